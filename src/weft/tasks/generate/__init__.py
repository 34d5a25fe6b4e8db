"""Predicting the next token, and so writing; counted, recurrent, or with attention: the model's family says which."""

HOMES = ("task", "counts", "recurrent")
