"""The same data, seed and time over several settings or models, and a table of what came out.

`weft.compare(…)` is `weft.compare.compare(…)`: the package can be called, because a verb and its package share a name.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from weft.lazy import lazy

if TYPE_CHECKING:
    from weft.compare.comparing import compare
    from weft.compare.comparison import Comparison

_HOME = {"Comparison": "comparison", "compare": "comparing"}

__all__ = ["Comparison", "compare"]

__getattr__, __dir__ = lazy(__name__, _HOME)


class _Verb(ModuleType):
    """A module that does its verb when it is called."""

    def __call__(self, *words: Any, **options: Any) -> Comparison:
        from weft.compare.comparing import compare

        return compare(*words, **options)


sys.modules[__name__].__class__ = _Verb
