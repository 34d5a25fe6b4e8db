"""The same data, seed and time over several settings or models, and a table of what came out: `weft.compare(…)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.lazy import lazy

if TYPE_CHECKING:
    from weft.comparison.comparing import compare
    from weft.comparison.result import Comparison

_HOME = {"Comparison": "result", "compare": "comparing"}

__all__ = ["Comparison", "compare"]

__getattr__, __dir__ = lazy(__name__, _HOME)
