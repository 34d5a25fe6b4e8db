"""Saying what a text or an image is: the model's family says which."""

HOMES = ("task", "images")
