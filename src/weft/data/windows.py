"""How a language model reads a long row of tokens: windows in random order to learn, a sweep in order to judge."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from weft.data.order import Shuffle, hash_numbers
from weft.data.token_file import TokenFile
from weft.errors import DataError

Tokens = TokenFile | NDArray[np.integer]


def row_of(tokens: Tokens) -> NDArray[np.integer]:
    """The ids as a plain array: a view of the memory map, without the cost of its class."""
    return np.asarray(tokens.ids if isinstance(tokens, TokenFile) else tokens)


class Windows:
    """Training samples: in each epoch the tokens are cut into windows, which come in a shuffled order.

    A window is length + 1 tokens: the first `length` are read, the last `length` are predicted. Windows of an
    epoch follow each other without overlap of what is predicted; where the first one starts differs from epoch to
    epoch, so that no token is always the one with nothing before it. Everything is a pure function of
    (seed, sample number): continuing at sample 10⁹ costs as much as starting.
    """

    def __init__(self, tokens: Tokens, length: int, seed: int) -> None:
        row = row_of(tokens)
        if len(row) < length + 1:
            raise DataError(
                f"only {len(row)} tokens of text",
                expected=f"at least {length + 1}, for windows of {length}",
                advice="give more text, or choose a shorter length",
            )
        self.length = length
        self.seed = seed
        self.per_epoch = max(1, len(row) // length - 1)
        self._room = len(row) - self.per_epoch * length  # how many places there are for the first window
        self._starting_at = sliding_window_view(row, length + 1)
        self._epoch = (-1, Shuffle(1, 0, 0), 0)

    def __repr__(self) -> str:
        return f"Windows(length={self.length}, per_epoch={self.per_epoch}, seed={self.seed})"

    def starts(self, samples: NDArray[np.integer]) -> NDArray[np.int64]:
        """Where in the text the windows of these samples begin."""
        numbers = np.asarray(samples, dtype=np.int64)
        epochs, places = np.divmod(numbers, self.per_epoch)
        first = int(epochs.flat[0]) if epochs.size else 0
        if (epochs == first).all():
            return self._in_epoch(first, places)
        result = np.empty_like(numbers)
        for epoch in np.unique(epochs).tolist():
            here = epochs == epoch
            result[here] = self._in_epoch(epoch, places[here])
        return result

    def _in_epoch(self, epoch: int, places: NDArray[np.int64]) -> NDArray[np.int64]:
        known, order, offset = self._epoch
        if known != epoch:
            order = Shuffle(self.per_epoch, self.seed, epoch)
            offset = hash_numbers(self.seed, epoch, -1) % self._room
            self._epoch = (epoch, order, offset)
        return order[places] * self.length + offset

    def batch(self, samples: NDArray[np.integer]) -> NDArray[np.int64]:
        """The windows with these sample numbers, counted through all epochs: (B, length + 1)."""
        return self._starting_at[self.starts(samples)].astype(np.int64)


class Sweep:
    """Evaluation: every token but the very first is predicted exactly once, in windows in order.

    A sequence of batches (B, T + 1), of at most `rows` windows of `length` tokens; the last one may hold a single
    shorter window. Processes can share the work: `sweep[rank::ranks]` is a sweep over every so many batches.
    """

    def __init__(self, tokens: Tokens, length: int, rows: int) -> None:
        self._tokens = row_of(tokens)
        if len(self._tokens) < 2:
            raise DataError(f"{len(self._tokens)} tokens to evaluate on", expected="at least 2: one predicts the next")
        self.length = length
        self.rows = rows
        self.predicted = len(self._tokens) - 1
        self._full = self.predicted // length
        batches = -(-self._full // rows) + (self.predicted % length > 0)
        self._chosen = range(batches)

    def __repr__(self) -> str:
        return f"Sweep(length={self.length}, rows={self.rows}, batches={len(self)})"

    def __len__(self) -> int:
        return len(self._chosen)

    def __iter__(self) -> Iterator[NDArray[np.int64]]:
        return (self._batch(number) for number in self._chosen)

    def __getitem__(self, which: slice) -> Sweep:
        """Some of the batches."""
        part = Sweep(self._tokens, self.length, self.rows)
        part._chosen = self._chosen[which]
        part.predicted = sum(part._size(number) for number in part._chosen)
        return part

    def _size(self, number: int) -> int:
        """How many tokens a batch predicts."""
        windows = min(self.rows, self._full - number * self.rows)
        return windows * self.length if windows > 0 else (len(self._tokens) - 1) % self.length

    def _batch(self, number: int) -> NDArray[np.int64]:
        first = number * self.rows
        if first >= self._full:
            return self._tokens[None, self._full * self.length :].astype(np.int64)
        windows = np.arange(first, min(first + self.rows, self._full))[:, None]
        return self._tokens[windows * self.length + np.arange(self.length + 1)].astype(np.int64)
