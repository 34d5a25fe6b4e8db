"""The task `tag`: learn a tag for each word, such as named entities and parts of speech."""
