"""What the attention of a run looks at, with words for rows and columns."""
