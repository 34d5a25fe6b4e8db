"""The simplest tagger: each word gets the tag that it has most often. What a model says is worth comparing with it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from weft.errors import DataError


class MostFrequentTag:
    """The most frequent tag of each word, as it is written; an unknown word has the most frequent tag of all."""

    def __init__(self, words: Sequence[Sequence[str]], tags: Sequence[Sequence[str]]) -> None:
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for row, told in zip(words, tags, strict=True):
            for word, tag in zip(row, told, strict=True):
                counts[word][tag] += 1
        if not counts:
            raise DataError("no words to learn from", expected="at least one")
        whole = sum(counts.values(), Counter[str]())
        self.unknown = _most_frequent(whole)
        self.tags = {word: _most_frequent(found) for word, found in counts.items()}

    def __repr__(self) -> str:
        return f"MostFrequentTag({len(self.tags)} words, else {self.unknown!r})"

    def predict(self, words: Sequence[Sequence[str]]) -> list[list[str]]:
        """The tags of sentences, given as words."""
        return [[self.tags.get(word, self.unknown) for word in row] for row in words]


def _most_frequent(counts: Counter[str]) -> str:
    return min(counts, key=lambda tag: (-counts[tag], tag))
