"""What is given to a run in Python, checked: a text or a list of texts."""

from __future__ import annotations

from collections.abc import Sequence

from weft.errors import DataError


def check_texts(given: str | Sequence[str], what: str) -> list[str]:
    """A text as a list of one, several texts as a list; anything else is refused, and `what` says what it was for."""
    expected, advice = "a text, or a list of texts", "numbers become text by str(…)"
    if isinstance(given, str):
        return [given]
    if isinstance(given, bytes | dict) or not hasattr(given, "__iter__"):
        raise DataError(f"a {type(given).__name__} {what}", expected=expected, advice=advice)
    texts = list(given)
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise DataError(f"a {type(text).__name__} {what}, at place {place}", expected=expected, advice=advice)
    return texts
