"""One text or two as an encoder reads them: `[CLS] a [SEP] b [SEP]`, with 0 for the first and 1 for the second
(BERT, Devlin et al. 2019)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from weft.errors import ConfigError
from weft.text.spelling import Ids

Segments = NDArray[np.uint8]
Joined = tuple[Ids, Segments]


def kept_lengths(first: int, second: int, room: int) -> tuple[int, int]:
    """How much of two texts stays when only `room` tokens fit: the longer one is cut first, then both alike.

    An odd token goes to the text that was longer, to the second if they were equal.
    """
    if first + second <= room:
        return first, second
    short = min(first, second, room // 2)
    return (room - short, short) if first > second else (short, room - short)


def join(first: Ids, second: Ids | None, classify: int, separate: int, max_length: int | None = None) -> Joined:
    """Ids and segments of one text or two, cut to `max_length` with the special tokens counted."""
    if max_length is not None:
        room = max_length - (2 if second is None else 3)
        if room < 0:
            raise ConfigError(f"max_length = {max_length}", expected="room for [CLS] and for [SEP] after each text")
        kept = kept_lengths(len(first), 0 if second is None else len(second), room)
        first, second = first[: kept[0]], second if second is None else second[: kept[1]]
    before = len(first) + 2
    ids = np.empty(before + (0 if second is None else len(second) + 1), dtype=np.uint32)
    ids[0], ids[1 : before - 1], ids[before - 1] = classify, first, separate
    segments = np.zeros(len(ids), dtype=np.uint8)
    if second is not None:
        ids[before:-1], ids[-1] = second, separate
        segments[before:] = 1
    return ids, segments


def flat(pairs: Sequence[tuple[str, str | None]]) -> list[str]:
    """All the texts of the pairs in order, for one pass of the engine."""
    return [text for pair in pairs for text in pair if text is not None]
