"""Channel attention: the channels of a head attend to each other, over all tokens.

Ding et al. 2022, "DaViT: Dual Attention Vision Transformers". Where other kinds ask which token resembles which, this
one asks which channel resembles which, and mixes channels by that. Each channel has seen all tokens, so every token
receives from the whole image, and the cost is linear in their number.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from weft.blocks.attention.base import (
    EVERYTHING,
    AttentionConfig,
    AttentionCore,
    Heads,
    Keys,
    Mask,
    Queries,
    Scored,
    Values,
    spread,
)
from weft.blocks.attention.heads import Attention, width_of_head
from weft.blocks.attention.softmax import (
    SoftmaxConfig,
    inverse_temperature,
    is_choice,
    softargmax,
    temperature_of_softmax,
    wide,
    work_of_pairs,
)
from weft.blocks.cache import Cache
from weft.blocks.work import Work
from weft.config import Amount, Share, Size
from weft.errors import UnsupportedError


class ChannelAttention(AttentionCore):
    """softargmax(β·qᵀ·k)·vᵀ, transposed back: the scores of channel i with channel j are summed over the tokens.

    beta     inverse temperature; None is 1/√(channels of a head)
    dropout  share of the weights dropped in training
    """

    reads_memory = False
    rows = "sums to one"
    unit = "channel"

    def __init__(self, *, beta: float | None = None, dropout: float = 0.0) -> None:
        super().__init__()
        self.beta, self.dropout = beta, dropout

    def extra_repr(self) -> str:
        return f"beta={'1/√K' if self.beta is None else self.beta}, dropout={self.dropout}"

    def forward(self, query: Queries, key: Keys, value: Values, mask: Mask = EVERYTHING) -> Heads:
        if mask.keep is not None:
            padding = ~mask.keep[:, None, :, None]
            value = value.masked_fill(padding, 0.0)
        table = F.dropout(self.channel_weights(query, key, mask), self.dropout, self.training)
        if value.shape[3] != table.shape[3]:
            given = f"values of {value.shape[3]} channels with keys of {table.shape[3]}"
            raise UnsupportedError(given, expected="as many in both: each channel has a key and a value")
        return spread(value, query.shape[1]) @ table.transpose(2, 3)

    def operations(self, query: Queries, key: Keys, value: Values, mask: Mask = EVERYTHING) -> Iterator[Work]:
        rows, heads, length, width = query.shape  # the pairs are of channels, each as wide as the text is long
        yield work_of_pairs(rows, heads, width, width, (length, length), choice=not self.teaches_queries)

    @property
    def teaches_queries(self) -> bool:
        return not is_choice(self.beta)

    def table(self, query: Queries, key: Keys, mask: Mask = EVERYTHING) -> Float[Tensor, "B H I J"]:
        return self.channel_weights(query, key, mask)

    def channel_weights(self, query: Queries, key: Keys, mask: Mask = EVERYTHING) -> Float[Tensor, "B H I J"]:
        """How much channel i of a head receives of channel j."""
        return softargmax(self._products(query, key, mask), inverse_temperature(self.beta, query)).to(query.dtype)

    def scored(self, query: Queries, key: Keys, mask: Mask = EVERYTHING) -> Scored:
        """Of each channel with each other one."""
        return Scored(temperature_of_softmax(self.beta, query) * self._products(query, key, mask), None)

    def _products(self, query: Queries, key: Keys, mask: Mask) -> Float[Tensor, "B H I J"]:
        self._check(query, key, mask)
        if mask.keep is not None:
            query = query.masked_fill(~mask.keep[:, None, :, None], 0.0)
        return wide(query).transpose(2, 3) @ wide(spread(key, query.shape[1]))

    def new_cache(self, capacity: int | None = None) -> Cache:
        raise self._without("a cache")

    def recall(self, query: Queries, key: Tensor | None, value: Tensor | None, mask: Mask, cache: Cache) -> Heads:
        raise self._without("a cache")

    def _check(self, query: Tensor, key: Tensor, mask: Mask) -> None:
        if query.shape[2] != key.shape[2]:
            raise self._without(f"{query.shape[2]} queries for {key.shape[2]} keys")
        parts = {"causal": mask.causal, "allow": mask.allow is not None, "bias": mask.bias is not None}
        for name, given in (parts | {"packed": mask.packed is not None}).items():
            if given:
                raise self._without(f"Mask {name}")

    @staticmethod
    def _without(what: str) -> UnsupportedError:
        given = f"{what} with channel attention: every channel has seen every token"
        return UnsupportedError(given, expected="a whole text or image at once, no mask but keep")


class ChannelConfig(AttentionConfig, kind="channel"):
    """Channel attention in groups of channels, the `heads` (None: the fewest with at most 32 channels, as DaViT's)."""

    description = "The channels of a head attend to each other, over all tokens"
    cost = "N·K² for pairs of channels, no pairs of tokens"

    heads: Size | None = None
    bias: bool = True
    beta: Amount | None = None
    dropout: Share = 0.0

    @property
    def writes(self) -> bool:
        return False

    @property
    def takes_bias(self) -> bool:
        return False

    def seen(self, length: int, width: int, *, causal: bool) -> float:
        return float(self.sizes(width)[1])

    def for_memory(self) -> SoftmaxConfig:
        return SoftmaxConfig.like(self)

    def build(self, width: int, *, qk: nn.Module | None = None) -> Attention:
        return Attention(width, heads=self.sizes(width)[0], bias=self.bias, qk=qk, core=self.core())

    def sizes(self, width: int) -> tuple[int, int]:
        heads = self.heads or next(h for h in range(1, width + 1) if width % h == 0 and width // h <= 32)
        return heads, width_of_head(width, heads, None)

    def core(self) -> ChannelAttention:
        return ChannelAttention(beta=self.beta, dropout=self.dropout)
