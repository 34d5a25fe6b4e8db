"""Stretches: consecutive sentences of one document, as many as fit into a given room."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from weft.data.sentences import Sentences

Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Stretches:
    """What is read at once, in the order of the text; together they are all of it.

    units        where in the ids each unit begins, and the end: a sentence, or a part of one that is too long
    documents    the first unit of each document, and the end
    first, end   the units [first, end) of each stretch
    document     to which document each stretch belongs
    left_out     documents without any stretch: a pair takes two units, and they have one
    """

    units: Places
    documents: Places
    first: Places
    end: Places
    document: Places
    left_out: int

    def __len__(self) -> int:
        return len(self.first)

    def __repr__(self) -> str:
        return f"Stretches({len(self)} of {len(self.units) - 1} sentences)"

    def of_document(self) -> tuple[Places, Places]:
        """For each stretch, the first stretch of its document and the one after the last."""
        return np.searchsorted(self.document, self.document), np.searchsorted(self.document, self.document, "right")


def pack(sentences: Sentences, room: int, *, pairs: bool) -> Stretches:
    """Fill stretches of at most `room` tokens from the beginning of each document.

    For `pairs` a stretch has at least two units: sentences above half the room are cut, so that any two fit, and a
    last unit that would be left alone takes the one before it along.
    """
    units, documents = _units(sentences, max(1, room // 2) if pairs else room)
    offsets, edges = units.tolist(), documents.tolist()
    first: list[int] = []
    end: list[int] = []
    document: list[int] = []
    left_out = 0
    for number, (begin, stop) in enumerate(pairwise(edges)):
        if pairs and stop - begin < 2:
            left_out += 1
            continue
        at = begin
        while at < stop:
            after = bisect_right(offsets, offsets[at] + room, at + 1, stop + 1) - 1
            first.append(min(at, after - 2) if pairs else at)
            end.append(after)
            document.append(number)
            at = after
    begins, ends, owners = (np.array(part, dtype=np.int64) for part in (first, end, document))
    return Stretches(units, documents, begins, ends, owners, left_out)


def _units(sentences: Sentences, most: int) -> tuple[Places, Places]:
    """Sentences, those above `most` tokens in equal parts; and the first unit of each document."""
    starts = sentences.sentences
    lengths = np.diff(starts)
    parts = -(-lengths // most)
    before = np.concatenate([[0], np.cumsum(parts)])
    whole = np.repeat(np.arange(len(lengths)), parts)
    place = np.arange(before[-1]) - before[whole]
    units = starts[whole] + lengths[whole] * place // parts[whole]
    return np.append(units, starts[-1]), before[sentences.documents]
