"""Numbers that look random and are a pure function of what they are asked for: (seed, what for, sample, place)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weft.data.order import hash_numbers

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_A, _B, _C = np.uint64(30), np.uint64(27), np.uint64(31)
_TO_UNIT = np.uint64(11)

Drawn = NDArray[np.uint64]


def _stirred(state: Drawn) -> Drawn:
    """SplitMix's last steps (Steele et al. 2014), on a whole array, which is used up."""
    state ^= state >> _A
    state *= _FIRST
    state ^= state >> _B
    state *= _SECOND
    state ^= state >> _C
    return state


class KeyedDraws:
    """Draws for samples by their numbers; `purpose` keeps draws of different kinds apart."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __repr__(self) -> str:
        return f"KeyedDraws(seed={self.seed})"

    def of(self, numbers: NDArray[np.integer], purpose: str) -> Drawn:
        """One 64-bit number for each sample."""
        key = np.uint64(hash_numbers(self.seed, *purpose.encode()))
        return _stirred(_stirred(np.asarray(numbers).astype(np.uint64) * _STEP + key) + key)

    @staticmethod
    def at(drawn: Drawn, places: NDArray[np.integer]) -> Drawn:
        """For numbers already drawn, one more for each place; shapes as numpy broadcasts them."""
        return _stirred(drawn + (np.asarray(places).astype(np.uint64) + np.uint64(1)) * _STEP)


def unit(drawn: Drawn) -> NDArray[np.float64]:
    """As numbers in [0, 1)."""
    return (drawn >> _TO_UNIT).astype(np.float64) * 2.0**-53


def below(drawn: Drawn, limits: NDArray[np.integer] | int) -> NDArray[np.int64]:
    """As whole numbers in [0, limit); the bias is below 2⁻³² for any limit that a text could have."""
    return (drawn % np.asarray(limits).astype(np.uint64)).astype(np.int64)
