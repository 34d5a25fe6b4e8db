"""Local attention: each position sees its neighbours, as a convolution does; without its future it is called banded.

Child et al. 2019, "Generating Long Sequences with Sparse Transformers"; the banded layers of GPT-3 (Brown et al. 2020),
the sliding window of Longformer (Beltagy et al. 2020). Information travels further by `window` with every layer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from weft.blocks.attention.base import Grid
from weft.blocks.attention.pattern import Block, Pattern, PatternConfig
from weft.config import Size

QUERIES_PER_TILE = 64  # more waste keys at the corners of a tile, fewer waste calls


@dataclass(frozen=True)
class Local(Pattern):
    """Places less than `window` apart."""

    window: int

    def sees(self, query: Tensor, key: Tensor) -> Tensor:
        return (query - key).abs() < self.window

    def blocks(self, first: int, length: int, causal: bool) -> Iterator[Block]:
        for start in range(first, length, QUERIES_PER_TILE):
            stop = min(start + QUERIES_PER_TILE, length)
            last = stop if causal else min(stop + self.window - 1, length)
            yield slice(start, stop), slice(max(0, start - self.window + 1), last)

    def reach(self) -> int:
        return self.window

    def sees_all(self, length: int) -> bool:
        return self.window >= length

    def on(self, grid: Grid) -> Around:
        return Around(self.window, grid.columns)


@dataclass(frozen=True)
class Around(Pattern):
    """Places of an image less than `window` rows and columns apart."""

    window: int
    columns: int

    @property
    def period(self) -> int:  # type: ignore[override]
        return self.columns

    def sees(self, query: Tensor, key: Tensor) -> Tensor:
        rows = query // self.columns - key // self.columns
        columns = query % self.columns - key % self.columns
        return (rows.abs() < self.window) & (columns.abs() < self.window)

    def sees_all(self, length: int) -> bool:
        return self.window >= max(self.columns, length // self.columns)

    def blocks(self, first: int, length: int, causal: bool) -> Iterator[Block]:
        further = (self.window - 1) * self.columns
        size = max(1, QUERIES_PER_TILE // self.columns) * self.columns
        for start in range(first, length, size):
            stop = min(start + size, length)
            above, below = start // self.columns * self.columns, -(-stop // self.columns) * self.columns
            yield slice(start, stop), slice(max(0, above - further), stop if causal else min(below + further, length))


class LocalConfig(PatternConfig, kind="local", aliases=("banded",)):
    """Each position sees itself and `window` − 1 to each side; of an image, so many rows and columns."""

    description = "Each position sees its neighbours, as a convolution does; without its future it is called banded"
    cost = "N·(2·window − 1) pairs, of a decoder N·window"
    small_fields: ClassVar = {"window": 4}

    window: Size = 256

    def pattern(self) -> Local:
        return Local(self.window)
