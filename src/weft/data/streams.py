"""How a model that carries a state reads a long row of tokens: in lanes side by side, each from beginning to end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weft.data.order import mixed
from weft.data.windows import Tokens, row_of
from weft.errors import DataError


class StreamSegments(NamedTuple):
    """Some lanes' stretches of one step.

    windows   (B, length + 1): the first `length` are read, the last `length` are predicted
    lanes     (B,): which lane each belongs to
    fresh     (B,): whether an epoch begins, so that nothing comes before it
    """

    windows: NDArray[np.int64]
    lanes: NDArray[np.int64]
    fresh: NDArray[np.bool_]


class ContiguousStreams:
    """Training samples: in each epoch the tokens are cut into `count` lanes, and step t reads the t-th stretch of each.

    Sample n is lane n mod count of step n div count, so a batch is one stretch of every lane, and the next batch goes
    on where it ended. Where the first lane begins differs from epoch to epoch, and the text is a ring: after its last
    token comes the first. What does not fill a stretch of every lane is left out, another part in every epoch.
    Everything is a pure function of (seed, sample number).
    """

    def __init__(self, tokens: Tokens, length: int, count: int, seed: int) -> None:
        self._row = row_of(tokens)
        if len(self._row) < length * count:
            raise DataError(
                f"only {len(self._row)} tokens of text",
                expected=f"at least {length * count}, for {count} lanes (training.batch) of {length} (data.length)",
                advice="give more text, or choose a smaller batch or a shorter length",
            )
        self.length, self.count, self.seed = length, count, seed
        self._stretch = np.arange(length + 1)
        self.steps = len(self._row) // (length * count)  # of an epoch
        self.per_epoch = self.steps * count

    def __repr__(self) -> str:
        return f"ContiguousStreams({self.count} of {self.steps} stretches of {self.length}, seed={self.seed})"

    def batch(self, samples: NDArray[np.integer]) -> StreamSegments:
        """The stretches with these sample numbers, counted through all epochs."""
        steps, lanes = np.divmod(np.asarray(samples, dtype=np.int64), self.count)
        epochs, places = np.divmod(steps, self.steps)
        starts = (lanes * self.steps + places) * self.length + self._offsets(epochs)
        where = starts[:, None] + self._stretch
        windows = self._row.take(where, mode="wrap").astype(np.int64, copy=False)
        return StreamSegments(windows, lanes, places == 0)

    def _offsets(self, epochs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the first lane begins in these epochs; mostly all are the same."""
        different = epochs[:1] if (epochs == epochs[:1]).all() else epochs
        return np.array([mixed(self.seed, epoch, -2) % len(self._row) for epoch in different.tolist()], dtype=np.int64)
