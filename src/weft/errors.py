"""Everything Weft refuses, in words: what was given, what was expected, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class WeftError(Exception):
    """Base of all errors that Weft raises on purpose; one to three lines, no traceback needed."""

    exit_code = 1

    def __init__(self, given: str, *, expected: str = "", advice: str = "") -> None:
        lines = [given, f"expected {expected}" if expected else "", advice]
        super().__init__("\n".join(line for line in lines if line))


class ConfigError(WeftError, ValueError):
    """A setting that does not exist or cannot have this value."""

    exit_code = 2


class DataError(WeftError, ValueError):
    """What the user gave to read is empty, broken or of the wrong kind."""


class ShapeError(WeftError, ValueError):
    """A tensor whose shape or type does not fit."""


class UnsupportedError(WeftError, ValueError):
    """A part was asked for something that it cannot honour, and refuses instead of ignoring it."""


class MissingMethodError(UnsupportedError, AttributeError):
    """A run was asked for what it cannot do."""


class WeightsError(WeftError, ValueError):
    """Tensors that do not match the model: missing, left over, or of another shape."""


def did_you_mean(word: str, options: Iterable[str]) -> str:
    """`did you mean 'width'?` for a near miss, else the list of what there is."""
    known = sorted(options)
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known: {', '.join(known)}" if known else ""
