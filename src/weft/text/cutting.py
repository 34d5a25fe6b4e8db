"""Cutting a long text into pieces where a tokenizer cannot notice.

Sub-word schemes first split text at the edges of words, and look ahead only inside white space. A cut at such
an edge changes no id, so a gigabyte can be read piece by piece and on all cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

REACH = 1 << 14
"""How far to look back for a good place. A text with no space in that many characters is cut anywhere."""


def cut_point(text: str, low: int, high: int) -> int:
    """The best place in (low, high] to cut; `text` must go on after `high`.

    After a newline between two non-spaces; else before a space between two; else before a newline or a space
    that follows a non-space; else at `high`.
    """
    floor = max(low + (high - low) // 2, high - REACH, low + 2)

    def lonely(place: int) -> bool:
        return not (text[place - 1].isspace() or text[place + 1].isspace())

    def first(place: int) -> bool:
        return not text[place - 1].isspace()

    newline = _last(text, "\n", floor - 1, high, lonely)
    if newline >= 0:
        return newline + 1
    space = _last(text, " ", floor, high, lonely)
    if space >= 0:
        return space
    other = max(_last(text, "\n", floor, high, first), _last(text, " ", floor, high, first))
    return other if other >= 0 else high


def _last(text: str, mark: str, low: int, high: int, fits: Callable[[int], bool]) -> int:
    """The last place of `mark` in [low, high) that fits, or -1."""
    place = text.rfind(mark, low, high)
    while place >= 0 and not fits(place):
        place = text.rfind(mark, low, place)
    return place


def short_pieces(text: str, size: int) -> Iterator[str]:
    """The text as pieces of at most `size` characters."""
    start = 0
    while len(text) - start > size:
        end = cut_point(text, start, start + size)
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]
