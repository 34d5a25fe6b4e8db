"""A section of `weft inspect`: how its numbers are found, and how they are said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.tasks.inspection import Inspected

Told = dict[str, Any]


@dataclass(frozen=True)
class InspectSection:
    """One part of what is told.

    name   its key in the JSON object
    find   its numbers, ready for JSON; it may look at what the sections before it found
    tell   all that was found, in lines, for a terminal of so many columns
    doing  what is said while it is found, if that takes a while
    """

    name: str
    find: Callable[[Inspected, Told], Any]
    tell: Callable[[Inspected, Told, int], Iterator[str]]
    doing: str = ""
