"""What comes out of filling in: candidates for each gap, and the text as it reads with the best of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from weft.text.spelling import INSIDE


@dataclass(frozen=True)
class Candidate:
    """A candidate for a gap, as readable text."""

    text: str
    probability: float


@dataclass(frozen=True)
class Filled:
    """A text with gaps, the candidates for each (the likeliest first), and the text with the best in all of them."""

    text: str
    gaps: list[list[Candidate]]
    best: str

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        gaps = [[{"text": c.text, "probability": c.probability} for c in candidates] for candidates in self.gaps]
        return {"text": self.text, "best": self.best, "gaps": gaps}


def with_words(text: str, mask: str, words: Sequence[str]) -> str:
    """The given text with a word in each gap; a sub-word that continues a word follows it without a space."""
    first, *rest = text.split(mask)
    found = first
    for word, piece in zip(words, rest, strict=True):
        if word.startswith(INSIDE):
            found = found.rstrip() + word.removeprefix(INSIDE)
        else:  # tokens of some schemes have the space before them
            found = found.removesuffix(" ") + word if word.startswith(" ") and found else found + word
        found += piece
    return found
