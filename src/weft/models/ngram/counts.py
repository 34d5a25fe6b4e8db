"""Counting n-grams: all lengths of a text, level by level, with sorted arrays.

A token's n-gram of length m is known by two numbers: the place of its history in level m − 1 and the token itself.
Packed into one key of 64 bits and sorted, equal n-grams lie together and in the order of the tables. Memory is a few
arrays of the length of the text, whatever the order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.errors import DataError
from weft.models.ngram.tables import Ints, loops


@dataclass(frozen=True)
class Counted:
    """The n-grams of one length: `tokens` and `starts` as in `Level`.

    counts    (N) how often each occurs
    shorter   (N) the row of each without its first token, in the level below
    """

    tokens: NDArray[np.int32]
    starts: NDArray[np.int64]
    counts: NDArray[np.int64]
    shorter: NDArray[np.int64]

    @property
    def parents(self) -> NDArray[np.int64]:
        """(N) the history of each n-gram."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def sums(self, values: Ints) -> NDArray[np.int64]:
        """(C) the sum over the followers of each history of a whole number for each n-gram."""
        ends = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
        return ends[self.starts[1:]] - ends[self.starts[:-1]]


def count(
    ids: Ints, order: int, vocab_size: int, end: int | None = None, told: Callable[[int], None] | None = None
) -> list[Counted]:
    """The n-grams of 1 … `order` tokens of a text, each token counted once in each level that reaches it.

    The text begins as if another had ended before it; no n-gram reaches across an `end`. `told` is called with
    the number of each level.
    """
    return list(counted(ids, order, vocab_size, end, told))


def counted(
    ids: Ints, order: int, vocab_size: int, end: int | None = None, told: Callable[[int], None] | None = None
) -> Iterator[Counted]:
    """The levels of `count`, one after the other."""
    if len(ids) and int(ids.max()) >= vocab_size:
        raise DataError(f"the token {int(ids.max())}", expected=f"tokens below {vocab_size}")
    text = np.asarray(ids, dtype=np.int32)
    if end is not None:
        text = np.concatenate([np.array([end], dtype=np.int32), text])
    first = np.bincount(text[end is not None :], minlength=vocab_size)
    tokens = np.arange(vocab_size, dtype=np.int32)
    yield Counted(tokens, np.array([0, vocab_size]), first, np.zeros(vocab_size, dtype=np.int64))
    if told is not None:
        told(1)
    places, below = text, vocab_size
    for length in range(2, order + 1):
        histories = places[:-1].copy()
        if end is not None and length > 2:
            histories[text[:-1] == end] = -1
        level, places = _level(histories, text[1:], places[1:], below, vocab_size)
        below = len(level.tokens)
        yield level
        if told is not None:
            told(length)


def _level(
    histories: NDArray[np.int32], words: NDArray[np.int32], shorter: NDArray[np.int32], below: int, vocab_size: int
) -> tuple[Counted, NDArray[np.int32]]:
    """The n-grams of these histories and words, and the row of the one that ends at each token of the text."""
    asked = np.flatnonzero(histories >= 0)
    keys = histories[asked].astype(np.int64) * vocab_size + words[asked]
    keys, order = _sorted(keys)
    new = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=new[1:])
    at = np.flatnonzero(new)
    places = np.full(len(words) + 1, -1, dtype=np.int32)
    places[asked[order] + 1] = np.cumsum(new, dtype=np.int32) - 1
    parents, tokens = np.divmod(keys[at], vocab_size)
    starts = np.concatenate([[0], np.cumsum(np.bincount(parents, minlength=below))]).astype(np.int64)
    counts = np.diff(at, append=len(keys))
    return Counted(tokens.astype(np.int32), starts, counts, shorter[asked[order[at]]].astype(np.int64)), places


def _sorted(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], Ints]:
    """The sorted keys and the position of each before (a stable sort)."""
    compiled = loops(len(keys))
    if compiled is not None:
        result: tuple[NDArray[np.int64], Ints] = compiled.sort_places(keys, int(keys.max()))
        return result
    order = np.argsort(keys, kind="stable")
    return keys[order], order
