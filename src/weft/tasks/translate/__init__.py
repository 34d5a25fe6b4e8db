"""The task `translate`: learn to write one text from another."""
