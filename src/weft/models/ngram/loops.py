"""Compiled loops of the count models: sorting keys, and finding a token among those that followed a history.

numba compiles them at their first use and keeps the result on disk. Import this file only where numba is installed;
`weft.models.ngram.tables` does so, and has a way with numpy alone that gives the same numbers.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

logging.getLogger("numba").setLevel(logging.WARNING)
Ints = NDArray[Any]
OPTIONS: dict[str, Any] = {"cache": True, "nogil": True}
BITS_PER_DIGIT = 11  # of a key, sorted by one pass


@njit(**OPTIONS)  # type: ignore[untyped-decorator]
def sort_places(keys: NDArray[np.int64], largest: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The sorted keys, and the position of each before: a stable radix sort, the last digit first."""
    count = len(keys)
    here, there = keys.copy(), np.empty(count, dtype=np.int64)
    at, then = np.arange(count).astype(np.int32), np.empty(count, dtype=np.int32)
    shift = 0
    while largest >> shift:
        room = np.zeros((1 << BITS_PER_DIGIT) + 1, dtype=np.int64)
        for i in range(count):
            room[((here[i] >> shift) & ((1 << BITS_PER_DIGIT) - 1)) + 1] += 1
        for digit in range(1 << BITS_PER_DIGIT):
            room[digit + 1] += room[digit]
        for i in range(count):
            digit = (here[i] >> shift) & ((1 << BITS_PER_DIGIT) - 1)
            place = room[digit]
            room[digit] = place + 1
            there[place] = here[i]
            then[place] = at[i]
        here, there = there, here
        at, then = then, at
        shift += BITS_PER_DIGIT
    return here, at


@njit(**OPTIONS)  # type: ignore[untyped-decorator]
def find_followers(starts: Ints, tokens: Ints, histories: Ints, words: Ints, found: NDArray[np.int64]) -> None:
    """For each history (−1: none) the row of the word among its sorted followers; −1: none."""
    for i in range(len(words)):
        found[i] = -1
        history = histories[i]
        if history < 0:
            continue
        word = words[i]
        low, high = starts[history], starts[history + 1]
        after = high
        while low < high:
            middle = (low + high) // 2
            if tokens[middle] < word:
                low = middle + 1
            else:
                high = middle
        if low < after and tokens[low] == word:
            found[i] = low
