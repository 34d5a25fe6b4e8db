"""Window attention: the row, or the image, is cut into windows, and each position sees its own window alone.

Liu et al. 2021, "Swin Transformer": the cost grows with the length, not with its square. Nothing crosses the borders
inside one layer, so every second layer may cut half a window further on, or another kind carries it across (DaViT).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from weft.blocks.attention.base import (
    EVERYTHING,
    Allowed,
    AttentionCore,
    Grid,
    Heads,
    Keys,
    Mask,
    Queries,
    Scored,
    Values,
    Weights,
)
from weft.blocks.attention.heads import HeadsConfig
from weft.blocks.attention.softmax import SoftmaxAttention, SoftmaxConfig, work_of_pairs
from weft.blocks.cache import positions
from weft.blocks.work import Work
from weft.config import Amount, Count, Share, Size
from weft.errors import ConfigError, ShapeError, UnsupportedError


class WindowAttention(AttentionCore):
    """softargmax(β·q·k)·v over the keys in the query's own window.

    window   consecutive positions, counted in real tokens; of an image (`Mask.grid`) a square of window × window
    shift    where the first whole window begins, in rows and columns; those at the border are smaller, none wraps round

    With no mask, or causal alone, each window is a row of a batch, and the cost is linear in the length. Padding,
    caches, patterns and biases take the full table, in which all other windows are forbidden.
    """

    reads_memory = False
    rows = "sums to one"

    def __init__(self, *, window: int, shift: int = 0, beta: float | None = None, dropout: float = 0.0) -> None:
        super().__init__()
        self.window, self.shift = window, shift
        self.inside = SoftmaxAttention(beta=beta, dropout=dropout)

    def extra_repr(self) -> str:
        return f"window={self.window}, shift={self.shift}"

    def forward(self, query: Queries, key: Keys, value: Values, mask: Mask = EVERYTHING) -> Heads:
        asking, answering = query.shape[2], key.shape[2]
        if self._needs_all_pairs(mask, asking, answering):
            return self.inside(query, key, value, self._without_others(mask, asking, answering, query.device))
        cut = self._cut(mask, answering)
        real = cut.real(len(query), query.device)
        windows = (cut.windows(heads) for heads in (query, key, value))
        return cut.join(self.inside(*windows, Mask(causal=mask.causal, keep=real)))

    @staticmethod
    def _needs_all_pairs(mask: Mask, asking: int, answering: int) -> bool:
        return asking != answering or not (mask.is_everything or mask.is_causal_only)

    def operations(self, query: Queries, key: Keys, value: Values, mask: Mask = EVERYTHING) -> Iterator[Work]:
        """Each window is softmax attention."""
        rows, heads, asking, width = query.shape
        answering = key.shape[2]
        if not self._needs_all_pairs(mask, asking, answering):
            cut = self._cut(mask, answering)
            rows, asking, answering = rows * math.prod(cut.counts), math.prod(cut.window), math.prod(cut.window)
        widths, choice = (width, value.shape[3]), not self.teaches_queries
        yield work_of_pairs(rows, heads, asking, answering, widths, causal=mask.causal, choice=choice)

    @property
    def teaches_queries(self) -> bool:
        return self.inside.teaches_queries

    def weights(self, query: Queries, key: Keys, mask: Mask = EVERYTHING) -> Weights:
        mask = self._without_others(mask, query.shape[2], key.shape[2], query.device)
        return self.inside.weights(query, key, mask)

    def allowed(self, mask: Mask, asking: int, answering: int, device: torch.device) -> Allowed | None:
        return self._without_others(mask, asking, answering, device).allowed(asking, answering, device)

    def scored(self, query: Queries, key: Keys, mask: Mask = EVERYTHING) -> Scored:
        mask = self._without_others(mask, query.shape[2], key.shape[2], query.device)
        return self.inside.scored(query, key, mask)

    def _cut(self, mask: Mask, length: int) -> WindowPartition:
        if mask.grid is None:
            columns, right = self._along(length)
            return WindowPartition(Grid(1, length), (1, columns), (0, right))
        if mask.grid.places != length:
            raise ShapeError(f"{length} tokens", expected=f"{mask.grid.places}, as in {mask.grid}")
        (rows, down), (columns, right) = self._along(mask.grid.rows), self._along(mask.grid.columns)
        return WindowPartition(mask.grid, (rows, columns), (down, right))

    def _along(self, size: int) -> tuple[int, int]:
        """Window and shift along a side of this size; where the first window holds all, it need not be larger."""
        return (size, 0) if size <= (self.shift or self.window) else (self.window, self.shift)

    def _without_others(self, mask: Mask, asking: int, answering: int, device: torch.device) -> Mask:
        """The mask with all other windows forbidden; the last query is at the position of the last key."""
        if asking > answering:
            raise UnsupportedError(f"{asking} queries for {answering} keys", expected="a key for each query: windows")
        if mask.grid is None:
            at = positions(answering, device, keep=mask.keep)
            own = (at - self.shift).div(self.window, rounding_mode="floor")
        else:
            own = self._cut(mask, answering).numbers(device)
        same = own[..., -asking:, None] == own[..., None, :]
        same = same if same.dim() == 2 else same[:, None]
        return replace(mask, allow=same if mask.allow is None else mask.allow & same)


@dataclass(frozen=True)
class WindowPartition:
    """How the places of a grid become windows of (rows, columns), and back; a border that fills none is padded."""

    grid: Grid
    window: tuple[int, int]
    shift: tuple[int, int]

    @property
    def before(self) -> tuple[int, int]:
        """Rows above and columns left of the grid that its first windows reach out to."""
        (height, width), (down, right) = self.window, self.shift
        return -down % height, -right % width

    @property
    def counts(self) -> tuple[int, int]:
        """Windows below and beside each other."""
        (above, left), (height, width) = self.before, self.window
        return -(-(above + self.grid.rows) // height), -(-(left + self.grid.columns) // width)

    @property
    def _padding(self) -> tuple[int, int, int, int]:
        """Columns left and right, rows above and below."""
        (above, left), (height, width), (down, across) = self.before, self.window, self.counts
        return left, across * width - left - self.grid.columns, above, down * height - above - self.grid.rows

    def windows(self, x: Float[Tensor, "B H T K"]) -> Float[Tensor, "N H W K"]:
        """Each window as a row of a batch: all of the first image, then those of the next."""
        (height, width), (down, across) = self.window, self.counts
        rows, heads, _, channels = x.shape
        x = x.view(rows, heads, self.grid.rows, self.grid.columns, channels)
        if any(self._padding):
            x = F.pad(x, (0, 0, *self._padding))
        x = x.view(rows, heads, down, height, across, width, channels)
        return x.permute(0, 2, 4, 1, 3, 5, 6).flatten(4, 5).flatten(0, 2)

    def join(self, windows: Float[Tensor, "N H W K"]) -> Float[Tensor, "B H T K"]:
        """The inverse of `windows`."""
        (above, left), (height, width), (down, across) = self.before, self.window, self.counts
        x = windows.view(-1, down, across, windows.shape[1], height, width, windows.shape[3])
        x = x.permute(0, 3, 1, 4, 2, 5, 6).flatten(4, 5).flatten(2, 3)
        return x[:, :, above : above + self.grid.rows, left : left + self.grid.columns].flatten(2, 3)

    def real(self, rows: int, device: torch.device) -> Tensor | None:
        """(N, W): which places of the windows are no padding, for so many images; None if all are."""
        if not any(self._padding):
            return None
        places = torch.ones(1, 1, self.grid.places, 1, device=device)
        return (self.windows(places)[:, 0, :, 0] > 0).repeat(rows, 1)

    def numbers(self, device: torch.device) -> Int[Tensor, "T"]:
        """The number of each place's window."""
        (above, left), (height, width) = self.before, self.window
        down = (torch.arange(self.grid.rows, device=device) + above) // height
        across = (torch.arange(self.grid.columns, device=device) + left) // width
        return (down[:, None] * self.counts[1] + across).flatten()


class WindowConfig(HeadsConfig, kind="window"):
    """Window attention. `window`: positions, of an image rows and columns; `shift`: where the first whole one begins.

    `alternate`: every second layer cuts half a window further on, so that information crosses the borders.
    """

    description = "The row, or the image, is cut into windows, and each position sees its own window alone"
    cost = "N·window pairs"
    small_fields: ClassVar = {"window": 6}

    window: Size = 7
    shift: Count = 0
    alternate: bool = True
    beta: Amount | None = None
    dropout: Share = 0.0

    def check(self) -> None:
        super().check()
        if self.shift >= self.window:
            raise ConfigError(f"shift = {self.shift}", expected=f"less than the window of {self.window}")

    def for_layer(self, number: int) -> WindowConfig:
        if not self.alternate or number % 2 == 0:
            return self
        return replace(self, shift=(self.shift + self.window // 2) % self.window)

    @property
    def by_rows(self) -> bool:
        return True

    def seen(self, length: int, width: int, *, causal: bool) -> float:
        return float(min(length, self.window))

    def for_memory(self) -> SoftmaxConfig:
        return SoftmaxConfig.like(self)

    def core(self) -> WindowAttention:
        return WindowAttention(window=self.window, shift=self.shift, beta=self.beta, dropout=self.dropout)
