"""Global attention: a few tokens see all and are seen by all; every other token sees those and itself.

Beltagy et al. 2020, "Longformer"; Zaheer et al. 2020, "BigBird". Any two tokens are two layers apart, at the cost of
N·g pairs for g global tokens. In a union with `local` it is those papers' attention.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from weft.blocks.attention.local import QUERIES_PER_TILE, Local
from weft.blocks.attention.pattern import Block, Pattern, PatternConfig, Union
from weft.config import Count
from weft.errors import ConfigError


@dataclass(frozen=True)
class SeesAll(Pattern):
    """A query at one of these places sees every key."""

    places: tuple[int, ...]
    period = None

    def sees(self, query: Tensor, key: Tensor) -> Tensor:
        among = torch.isin(query, torch.tensor(self.places, device=query.device))
        return among & (query >= 0) & (key >= 0)  # of the shape of both

    def blocks(self, first: int, length: int, causal: bool) -> Iterator[Block]:
        asking = [place for place in self.places if first <= place < length]
        if asking:
            yield torch.tensor(asking), slice(0, max(asking) + 1 if causal else length)


@dataclass(frozen=True)
class SeenByAll(Pattern):
    """A key at one of these places is seen by every query."""

    places: tuple[int, ...]
    period = None

    def sees(self, query: Tensor, key: Tensor) -> Tensor:
        among = torch.isin(key, torch.tensor(self.places, device=key.device))
        return among & (query >= 0) & (key >= 0)  # of the shape of both

    def blocks(self, first: int, length: int, causal: bool) -> Iterator[Block]:
        answering = torch.tensor([place for place in self.places if place < length], dtype=torch.long)
        for start in range(first, length, 4 * QUERIES_PER_TILE) if len(answering) else ():
            yield slice(start, min(start + 4 * QUERIES_PER_TILE, length)), answering


class GlobalConfig(PatternConfig, kind="global"):
    """Tokens that see all and are seen by all: the first `tokens` of the row, or those at `places`.

    Besides or instead, `learned` ones that are no part of it: a summary in every head, which all tokens can read
    (Ainslie et al. 2020, "ETC"). They see later tokens too, so a causal model can only have `places`.
    """

    description = "A few tokens see all and are seen by all; every other token sees those and itself"
    cost = "N·(2·tokens + 1) pairs"
    small_fields: ClassVar = {"tokens": 2}

    tokens: Count | None = None  # 4, unless places or learned ones are named
    places: tuple[Count, ...] = ()
    learned: Count = 0

    def check(self) -> None:
        super().check()
        if len(set(self.places)) < len(self.places):
            raise ConfigError(f"places = {self.places}", expected="each place once")
        if self.places and self.tokens is not None:
            raise ConfigError(f"tokens = {self.tokens} and places = {self.places}", expected="one of the two")
        if not (self._given or self.learned):
            raise ConfigError("no global tokens", expected="tokens, places or learned")

    @property
    def _given(self) -> tuple[int, ...]:
        """The places in the row."""
        if self.places:
            return tuple(sorted(self.places))
        return tuple(range((0 if self.learned else 4) if self.tokens is None else self.tokens))

    def pattern(self) -> Union:
        return Union((SeesAll(self._given), SeenByAll(self._given), Local(1)))
