"""Texts in an order in which neighbours are of similar length: batches without padding, and still shuffled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from weft.data.order import Shuffle, hash_numbers
from weft.errors import ConfigError, DataError

POOL = 32  # batches that are sorted together; of the texts of a pool, each batch has the most alike
POOLS = 4  # in a small table: or the same texts would meet in every epoch


class ByLength:
    """Which text each sample number is; every epoch has all texts once, in another order.

    An epoch is shuffled and cut into pools; in a pool, texts are sorted by length, cut into batches, and the batches
    shuffled. What comes when is a pure function of (seed, sample number): nothing is stored, a run resumes anywhere.
    """

    def __init__(self, lengths: Sequence[int] | NDArray[np.integer], batch: int, seed: int) -> None:
        self.lengths = np.asarray(lengths)
        if not len(self.lengths):
            raise DataError("no texts to put in order", expected="at least one")
        if batch < 1:
            raise ConfigError(f"batch = {batch}", expected="at least 1")
        self.batch, self.seed = batch, seed
        self._orders: dict[int, NDArray[np.int64]] = {}

    def __repr__(self) -> str:
        return f"ByLength({self.per_epoch} texts, batch={self.batch}, seed={self.seed})"

    @property
    def per_epoch(self) -> int:
        """Samples in one reading of all texts."""
        return len(self.lengths)

    def __getitem__(self, numbers: NDArray[np.integer]) -> NDArray[np.int64]:
        """The texts of these samples, by their places."""
        epochs, places = np.divmod(np.asarray(numbers, dtype=np.int64), self.per_epoch)
        found = np.empty_like(places)
        for epoch in np.unique(epochs).tolist():
            here = epochs == epoch
            found[here] = self._order(epoch)[places[here]]
        return found

    def _order(self, epoch: int) -> NDArray[np.int64]:
        """All texts in the order of one epoch; a batch spans two epochs at most, so two are kept."""
        if epoch not in self._orders:
            self._orders = {known: order for known, order in self._orders.items() if abs(known - epoch) == 1}
            self._orders[epoch] = self._ordered(epoch)
        return self._orders[epoch]

    def _ordered(self, epoch: int) -> NDArray[np.int64]:
        count = self.per_epoch
        size = self.batch * max(1, min(POOL, count // self.batch // POOLS))
        shuffled = Shuffle(count, self.seed, epoch)[np.arange(count)]
        rest = -epoch * count % self.batch  # what is missing in a batch that the epoch before has begun
        parts = [shuffled[:rest]]
        for number, start in enumerate(range(rest, count, size)):
            pool = shuffled[start : start + size]
            pool = pool[np.argsort(self.lengths[pool], kind="stable")]
            whole = len(pool) // self.batch
            if whole:
                batches = pool[len(pool) - whole * self.batch :].reshape(whole, self.batch)
                parts.append(batches[Shuffle(whole, hash_numbers(self.seed, epoch), number)[np.arange(whole)]].ravel())
            parts.append(pool[: len(pool) - whole * self.batch])  # the last pool only: too few for a batch
        return np.concatenate(parts)
