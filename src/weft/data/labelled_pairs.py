"""Labelled pairs of texts as tokens: does the second follow from the first, say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.errors import DataError
from weft.text import Tokenizer
from weft.text.word_edges import WordEdges


@dataclass(frozen=True, eq=False)
class LabelledPairs:
    """Pairs and the class of each.

    ids       all tokens, one text after the other: first, second, first, second, …
    words     which of them begin a word
    parts     where in `ids` each text begins, and the end
    labels    (N,) the class of each pair
    classes   their names
    """

    ids: NDArray[np.uint32]
    words: NDArray[np.bool_]
    parts: NDArray[np.int64]
    labels: NDArray[np.int64]
    classes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"LabelledPairs({len(self)} pairs, {len(self.classes)} classes, {len(self.ids)} tokens)"

    @classmethod
    def of(
        cls,
        pairs: Sequence[tuple[str, str]],
        labels: Sequence[int] | NDArray[np.integer],
        classes: Sequence[str],
        tokenizer: Tokenizer,
    ) -> LabelledPairs:
        """Tokenise pairs; labels count from 0."""
        known = np.asarray(labels)
        if len(pairs) != len(known) or not len(pairs):
            raise DataError(f"{len(pairs)} pairs with {len(known)} labels", expected="one label for each, and some")
        if known.ndim != 1 or known.dtype.kind not in "iu" or not 0 <= known.min() <= known.max() < len(classes):
            raise DataError("labels of pairs that are no classes", expected="one of the classes for each pair")
        encoded = tokenizer.encode_batch([text for pair in pairs for text in pair])
        parts = np.concatenate([[0], np.cumsum([len(part) for part in encoded])]).astype(np.int64)
        ids = np.concatenate(encoded)
        words = WordEdges.of(tokenizer).begins(ids, parts)
        return cls(ids, words, parts, known.astype(np.int64), tuple(classes))
