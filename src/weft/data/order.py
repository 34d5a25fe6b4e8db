"""The order of samples as a pure function: no list is shuffled, kept or stored, so a run resumes anywhere at once."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from weft.errors import ConfigError

_MASK = 2**64 - 1
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_HALF = np.uint64(32)
ROUNDS = 4


def hash_numbers(*numbers: int) -> int:
    """A 64-bit number that looks random and depends on all the numbers given (Steele et al. 2014, SplitMix)."""
    state = 0x9E3779B97F4A7C15
    for number in numbers:
        state = (state + number * 0xD1342543DE82EF95 + 0x9E3779B97F4A7C15) & _MASK
        state = ((state ^ (state >> 30)) * int(_FIRST)) & _MASK
        state = ((state ^ (state >> 27)) * int(_SECOND)) & _MASK
        state ^= state >> 31
    return state


class Shuffle:
    """A permutation of range(n) that is computed index by index, another one for every seed and epoch.

    An index is two digits, in base a and base b with a·b ≥ n. Each round adds to one digit a hash of the other,
    which can be undone, so the whole is a permutation of range(a·b) (a Feistel network); results from n on are
    sent through again until they fall below n (cycle walking), so that it is one of range(n) too.
    """

    def __init__(self, n: int, seed: int, epoch: int) -> None:
        if n < 1:
            raise ConfigError(f"n = {n}", expected="at least one sample to put in order")
        self.n = n
        low = math.isqrt(n - 1) + 1
        self._bases = (np.uint64(-(-n // low)), np.uint64(low))
        self._keys = [np.uint64(hash_numbers(seed, epoch, turn)) for turn in range(ROUNDS)]

    def __repr__(self) -> str:
        return f"Shuffle(n={self.n})"

    def __getitem__(self, indices: NDArray[np.integer]) -> NDArray[np.int64]:
        """Where the samples at these places of the order come from."""
        places = np.asarray(indices)
        numbers = places.astype(np.uint64).ravel()  # negative ones become huge
        if numbers.size and numbers.max() >= self.n:
            raise IndexError(f"index from {places.min()} to {places.max()} for {self.n} samples")
        result = self._permute(numbers)
        outside = np.flatnonzero(result >= self.n)
        while outside.size:
            result[outside] = self._permute(result[outside])
            outside = outside[result[outside] >= self.n]
        return result.astype(np.int64).reshape(places.shape)

    def _permute(self, places: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """One pass through all rounds: a permutation of range(a·b)."""
        digits = list(np.divmod(places, self._bases[1]))
        for turn, key in enumerate(self._keys):
            here, other = turn % 2, 1 - turn % 2
            hashed = (digits[other] ^ key) * _FIRST
            hashed ^= hashed >> _HALF
            hashed *= _SECOND
            hashed >>= _HALF  # the better half, and small enough that the sum cannot overflow
            hashed += digits[here]
            hashed %= self._bases[here]
            digits[here] = hashed
        return digits[0] * self._bases[1] + digits[1]


def in_order(numbers: NDArray[np.int64], count: int, seed: int) -> NDArray[np.int64]:
    """Which of `count` things each sample number is; every epoch has all of them once, in another order."""
    epochs, places = np.divmod(numbers, count)
    found = np.empty_like(places)
    for epoch in np.unique(epochs).tolist():
        here = epochs == epoch
        found[here] = Shuffle(count, seed, epoch)[places[here]]
    return found
