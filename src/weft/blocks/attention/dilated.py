"""Dilated attention: each position sees every `dilation`-th one of its neighbourhood.

With as many keys as local attention it looks `dilation` times as far, and misses what lies between; WaveNet's dilated
convolutions (van den Oord et al. 2016), Longformer's dilated sliding window (Beltagy et al. 2020).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from weft.blocks.attention.local import Local
from weft.blocks.attention.pattern import Block, Pattern, PatternConfig
from weft.config import Size


@dataclass(frozen=True)
class Dilated(Pattern):
    """Places a multiple of `dilation` apart, and fewer than `window` such steps; None: however many."""

    dilation: int
    window: int | None = None

    def sees(self, query: Tensor, key: Tensor) -> Tensor:
        apart = (query - key).abs()
        seen = apart % self.dilation == 0
        return seen if self.window is None else seen & (apart < self.window * self.dilation)

    def blocks(self, first: int, length: int, causal: bool) -> Iterator[Block]:
        """The places of equal remainder are a row of their own, in which the pattern is local."""
        step = self.dilation
        for rest in range(min(step, length)):
            count = -(-(length - rest) // step)
            begin = max(0, -(-(first - rest) // step))
            for query, key in Local(self.window or count).blocks(begin, count, causal):
                yield self._among_all(query, rest), self._among_all(key, rest)  # type: ignore[arg-type]

    def _among_all(self, run: slice, rest: int) -> slice:
        return slice(rest + run.start * self.dilation, rest + (run.stop - 1) * self.dilation + 1, self.dilation)

    def reach(self) -> int | None:
        return None if self.window is None else self.window * self.dilation


class DilatedConfig(PatternConfig, kind="dilated"):
    """Each position sees every `dilation`-th one, `window` of them to each side with itself."""

    description = "Each position sees every `dilation`-th one of its neighbourhood"
    cost = "N·(2·window − 1) pairs, of a decoder N·window"
    small_fields: ClassVar = {"window": 3, "dilation": 3}

    window: Size = 128
    dilation: Size = 4

    def pattern(self) -> Dilated:
        return Dilated(self.dilation, self.window)
