"""Hierarchy attention: a few summaries read all tokens, and every token reads the summaries.

tokens → summaries → tokens costs O(N·M) for N tokens and M summaries, where full attention costs O(N²); in exchange,
all that a token receives is a mixture of M vectors. The summaries' queries are learned, as the inducing points of Lee
et al. 2019, "Set Transformer", and the latents of Jaegle et al. 2021, "Perceiver"; the maps are the tokens' own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from weft.blocks.attention.base import (
    EVERYTHING,
    AttentionCore,
    Heads,
    Keys,
    Mask,
    Queries,
    Scored,
    Values,
    Weights,
    spread,
)
from weft.blocks.attention.heads import HeadsConfig
from weft.blocks.attention.softmax import (
    inverse_temperature,
    is_choice,
    products,
    softargmax,
    temperature_of_softmax,
    work_of_pairs,
)
from weft.blocks.cache import Cache
from weft.blocks.work import Work
from weft.config import Amount, Share, Size
from weft.errors import UnsupportedError


class HierarchyAttention(AttentionCore):
    """C = softargmax(β·summary·k), then softargmax(β·q·(C·k))·(C·v): a summary's key and value are what it collected.

    summaries  how many of them each head has
    beta       inverse temperature of both steps; None is 1/√(key width)
    dropout    share of the tokens' weights dropped in training
    """

    rows = "sums to one"
    unit = "summary"

    def __init__(
        self, *, heads: int, head_width: int, summaries: int, beta: float | None = None, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.beta, self.dropout = beta, dropout
        self.summaries = nn.Parameter(torch.empty(heads, summaries, head_width))
        nn.init.normal_(self.summaries, std=1 / math.sqrt(head_width))

    def extra_repr(self) -> str:
        beta = "1/√K" if self.beta is None else self.beta
        return f"summaries={self.summaries.shape[1]}, beta={beta}, dropout={self.dropout}"

    def forward(self, query: Queries, key: Keys, value: Values, mask: Mask = EVERYTHING) -> Heads:
        collected = self._collected(key, mask)
        asked = self._asked(query, collected, key)
        asked = F.dropout(asked, self.dropout, self.training)
        return asked @ (collected @ spread(value, query.shape[1]))

    def operations(self, query: Queries, key: Keys, value: Values, mask: Mask = EVERYTHING) -> Iterator[Work]:
        rows, heads, asking, width = query.shape
        summaries, values, choice = self.summaries.shape[1], value.shape[3], not self.teaches_queries
        yield work_of_pairs(rows, heads, summaries, key.shape[2], (2 * width, values), choice=choice)
        yield work_of_pairs(rows, heads, asking, summaries, (width, values), choice=choice)

    @property
    def teaches_queries(self) -> bool:
        return not is_choice(self.beta)

    def weights(self, query: Queries, key: Keys, mask: Mask = EVERYTHING) -> Weights:
        collected = self._collected(key, mask)
        return self._asked(query, collected, key) @ collected

    def scored(self, query: Queries, key: Keys, mask: Mask = EVERYTHING) -> Scored:
        """Of each token with each summary, whose keys the summaries have collected."""
        keys = self._collected(key, mask) @ spread(key, query.shape[1])
        return Scored(temperature_of_softmax(self.beta, query) * products(query, keys), None)

    def new_cache(self, capacity: int | None = None) -> Cache:
        raise self._without("a cache")

    def recall(self, query: Queries, key: Tensor | None, value: Tensor | None, mask: Mask, cache: Cache) -> Heads:
        raise self._without("a cache")

    def _collected(self, key: Keys, mask: Mask) -> Float[Tensor, "B H M S"]:
        """How much each summary takes of each token."""
        for name, given in (
            ("causal", mask.causal),
            ("allow", mask.allow is not None),
            ("bias", mask.bias is not None),
        ):
            if given:
                raise self._without(f"Mask {name}")
        summaries = self.summaries.expand(len(key), -1, -1, -1)
        allowed = mask.allowed(summaries.shape[2], key.shape[2], key.device)
        return softargmax(products(summaries, key), inverse_temperature(self.beta, key), allowed).to(key.dtype)

    def _asked(self, query: Queries, collected: Tensor, key: Keys) -> Float[Tensor, "B H T M"]:
        """How much each token takes of each summary."""
        keys = collected @ spread(key, query.shape[1])
        return softargmax(products(query, keys), inverse_temperature(self.beta, query)).to(query.dtype)

    @staticmethod
    def _without(what: str) -> UnsupportedError:
        given = f"{what} with hierarchy attention: a summary has seen every token"
        return UnsupportedError(given, expected="a whole text or image at once, no mask but keep")


class HierarchyConfig(HeadsConfig, kind="hierarchy"):
    """Attention through a few `summaries` in each head."""

    description = "A few summaries read all tokens, and every token reads the summaries"
    cost = "2·N·summaries pairs of a token and a summary"

    summaries: Size = 8
    beta: Amount | None = None
    dropout: Share = 0.0

    @property
    def writes(self) -> bool:
        return False

    @property
    def takes_bias(self) -> bool:
        return False

    def seen(self, length: int, width: int, *, causal: bool) -> float:
        return 2.0 * self.summaries

    def core_for(self, width: int) -> HierarchyAttention:
        heads, head_width = self.sizes(width)
        return HierarchyAttention(
            heads=heads, head_width=head_width, summaries=self.summaries, beta=self.beta, dropout=self.dropout
        )
