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
BITS = 11  # of a key that one pass looks at


@njit(**OPTIONS)  # type: ignore[untyped-decorator]
def sort_places(keys: NDArray[np.int64], largest: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The keys in order, and where each stood; equal ones stay as they were. Digit by digit, the last one first."""
    count = len(keys)
    here, there = keys.copy(), np.empty(count, dtype=np.int64)
    at, then = np.arange(count).astype(np.int32), np.empty(count, dtype=np.int32)
    shift = 0
    while largest >> shift:
        room = np.zeros((1 << BITS) + 1, dtype=np.int64)
        for i in range(count):
            room[((here[i] >> shift) & ((1 << BITS) - 1)) + 1] += 1
        for digit in range(1 << BITS):
            room[digit + 1] += room[digit]
        for i in range(count):
            digit = (here[i] >> shift) & ((1 << BITS) - 1)
            place = room[digit]
            room[digit] = place + 1
            there[place] = here[i]
            then[place] = at[i]
        here, there = there, here
        at, then = then, at
        shift += BITS
    return here, at


@njit(**OPTIONS)  # type: ignore[untyped-decorator]
def find_followers(starts: Ints, tokens: Ints, histories: Ints, words: Ints, found: NDArray[np.int64]) -> None:
    """For each history (−1: none) where among its followers, which are in order, the word stands; −1: nowhere."""
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
