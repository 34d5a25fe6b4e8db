"""Batches of pairs by a budget of tokens: long texts come few at a time, short ones many, and similar ones together.

Which pairs stand in bucket n is a pure function of (seed, n): the lengths decide where the cuts are, once for all
epochs; which of the pairs with about the same lengths stand where is drawn anew in each.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from weft.data.keyed_draws import KeyedDraws, unit
from weft.data.order import Shuffle, hash_numbers
from weft.errors import DataError

Ids = NDArray[np.int64]
BLUR = 3.0  # tokens by which targets may be out of order, so that a pair meets others in each epoch


class ByTokens:
    """Bunches of about `tokens` tokens, counted with the padding that they need; a longer pair goes alone.

    `lengths` is (N, 2): of each pair the tokens that are read and those that are written.
    """

    def __init__(self, lengths: NDArray[np.integer], tokens: int, seed: int) -> None:
        self.lengths = np.asarray(lengths, dtype=np.int64).reshape(-1, 2)
        if not len(self.lengths):
            raise DataError("no pairs to learn from", expected="at least one")
        self.tokens, self.seed = tokens, seed
        self.begins = _cuts(self.lengths[np.lexsort(self.lengths.T[::-1])], tokens)
        self._sorted: dict[int, Ids] = {}

    def __repr__(self) -> str:
        return f"ByTokens({len(self.lengths)} pairs, {self.per_epoch} length_buckets of {self.tokens} tokens)"

    @property
    def per_epoch(self) -> int:
        """Bunches in one reading of all pairs."""
        return len(self.begins) - 1

    def __getitem__(self, number: int) -> Ids:
        """The pairs of a bucket, of any epoch."""
        epoch, place = divmod(int(number), self.per_epoch)
        bucket = int(Shuffle(self.per_epoch, hash_numbers(self.seed, 1), epoch)[np.array([place])][0])
        return self._order(epoch)[self.begins[bucket] : self.begins[bucket + 1]]

    def _order(self, epoch: int) -> Ids:
        """All pairs by the lengths of their sources, and nearly by those of their targets."""
        if epoch not in self._sorted:
            drawn = KeyedDraws(self.seed).of(np.arange(len(self.lengths)), f"pairs of epoch {epoch}")
            self._sorted = {epoch: np.lexsort((self.lengths[:, 1] + BLUR * unit(drawn), self.lengths[:, 0]))}
        return self._sorted[epoch]


def _cuts(lengths: Ids, tokens: int) -> Ids:
    """Where each bucket of sorted pairs begins, and the end."""
    begins, widest = [0], np.zeros(2, dtype=np.int64)
    for place, pair in enumerate(lengths):
        wider = np.maximum(widest, pair)
        if place > begins[-1] and int(wider.sum()) * (place - begins[-1] + 1) > tokens:
            begins.append(place)
            wider = pair
        widest = wider
    return np.array([*begins, len(lengths)], dtype=np.int64)
