"""How a model that carries a state reads a long row of tokens: in streams side by side, each from beginning to end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from weft.data.order import hash_numbers
from weft.data.windows import Tokens, row_of
from weft.errors import DataError


class StreamSegments(NamedTuple):
    """Some streams' stretches of one step.

    windows   (B, length + 1): the first `length` are read, the last `length` are predicted
    streams     (B,): which stream each belongs to
    fresh     (B,): whether an epoch begins, so that nothing comes before it
    """

    windows: NDArray[np.int64]
    streams: NDArray[np.int64]
    fresh: NDArray[np.bool_]


class ContiguousStreams:
    """Training samples: in each epoch the tokens are cut into `count` streams; step t reads the t-th stretch of each.

    Sample n is stream n mod count of step n div count, so a batch is one stretch of every stream, and the next batch
    continues where it ended. Where the first stream begins differs from epoch to epoch, and the text is a ring: after
    its last token comes the first. What does not fill a stretch of every stream is left out, another part in every
    epoch.
    Everything is a pure function of (seed, sample number).
    """

    def __init__(self, tokens: Tokens, length: int, count: int, seed: int) -> None:
        self._row = row_of(tokens)
        if len(self._row) < length * count:
            raise DataError(
                f"only {len(self._row)} tokens of text",
                expected=f"at least {length * count}, for {count} streams (training.batch) of {length} (data.length)",
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
        steps, streams = np.divmod(np.asarray(samples, dtype=np.int64), self.count)
        epochs, places = np.divmod(steps, self.steps)
        starts = (streams * self.steps + places) * self.length + self._offsets(epochs)
        where = starts[:, None] + self._stretch
        windows = self._row.take(where, mode="wrap").astype(np.int64, copy=False)
        return StreamSegments(windows, streams, places == 0)

    def _offsets(self, epochs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the first stream begins in these epochs; mostly all are the same."""
        different = epochs[:1] if (epochs == epochs[:1]).all() else epochs
        return np.array(
            [hash_numbers(self.seed, epoch, -2) % len(self._row) for epoch in different.tolist()], dtype=np.int64
        )
