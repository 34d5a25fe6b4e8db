"""Plain text as the words that a tagger reads, with the place of each in the text.

A word is a run of letters, digits and accents; inside it may be a hyphen or an apostrophe between letters
(`well-known`, `O'Brien`) and a point, comma or colon between digits (`3.14`, `10:30`). The English `'s` is a word of
its own, as in the usual data sets. Any other character that is no white space is a word by itself, and so is each
character of a script without spaces. Letters with a point after each are one word (`U.S.`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from weft.text.word_edges import is_letter

_INITIALS = re.compile(r"(?:[^\W\d_]\.){2,}")
_BETWEEN_LETTERS, _BETWEEN_DIGITS = frozenset("-'’‐‑"), frozenset(".,:")


class PlacedWord(NamedTuple):
    """A word, its first character in the text, and the one after its last."""

    text: str
    start: int
    end: int


def split_words(text: str) -> list[PlacedWord]:
    """The words of a text, in order; everything but white space belongs to one of them."""
    found: list[PlacedWord] = []
    place = 0
    while place < len(text):
        end = place if text[place].isspace() else _word_end(text, place)
        if end > place:
            found.append(PlacedWord(text[place:end], place, end))
        place = max(end, place + 1)
    return found


def place_words(words: Sequence[str]) -> list[PlacedWord]:
    """The places of given words in the text that they make with a space between them."""
    found: list[PlacedWord] = []
    for word in words:
        start = found[-1].end + 1 if found else 0
        found.append(PlacedWord(word, start, start + len(word)))
    return found


def _word_end(text: str, start: int) -> int:
    if _is_clitic(text, start):
        return start + 2
    if not is_letter(text[start]):
        return _after_marks(text, start + 1)
    initials = _INITIALS.match(text, start)
    if initials and not is_letter(text[initials.end() : initials.end() + 1] or " "):
        return initials.end()
    place = start + 1
    while place < len(text):
        character, following = text[place], text[place + 1 : place + 2]
        inside = _continues(character)
        if not inside and following and not _is_clitic(text, place):
            inside = (character in _BETWEEN_LETTERS and _continues(following)) or (
                character in _BETWEEN_DIGITS and text[place - 1].isdecimal() and following.isdecimal()
            )
        if not inside:
            break
        place += 1
    return place


def _continues(character: str) -> bool:
    return is_letter(character) or unicodedata.category(character).startswith("M")


def _after_marks(text: str, place: int) -> int:
    """Signs that change the character before them stay with it: accents, and what makes one emoji of several."""
    while place < len(text) and (unicodedata.category(text[place]).startswith("M") or text[place] == "\u200d"):
        place += 1
    return place


def _is_clitic(text: str, place: int) -> bool:
    """Whether the English 's is there, after a word."""
    here = text[place : place + 2] in ("'s", "’s", "'S", "’S") and not _continues(text[place + 2 : place + 3] or " ")
    return here and place > 0 and _continues(text[place - 1])
