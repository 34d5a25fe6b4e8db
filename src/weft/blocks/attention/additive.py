"""Additive attention: a small network compares each query with each key, score = v · tanh(W q + U k).

Bahdanau, Cho and Bengio 2015, "Neural Machine Translation by Jointly Learning to Align and Translate", where attention
begins. There is one head, and no output map: what is given is the average of the values themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor, nn

from weft.blocks.attention.base import EVERYTHING, AttentionCore, Heads, Keys, Mask, Queries, Scored, Values, Weights
from weft.blocks.attention.softmax import softargmax
from weft.blocks.roles import ATTENTION_MAPS
from weft.blocks.work import Work


class AdditiveCore(AttentionCore):
    """softargmax(score · tanh(q + k)) over the keys; queries and keys are maps already, of the same width.

    A caller that computed the weights query by query passes them to `forward`.
    """

    reads_elsewhere = True
    rows = "sums to one"

    def __init__(self, width: int) -> None:
        super().__init__()
        self.score = nn.Parameter(torch.empty(width))
        nn.init.uniform_(self.score, -(width**-0.5), width**-0.5)

    def extra_repr(self) -> str:
        return f"width={len(self.score)}"

    def forward(
        self, query: Queries, key: Keys, value: Values, mask: Mask = EVERYTHING, weights: Tensor | None = None
    ) -> Heads:
        return (self.weights(query, key, mask) if weights is None else weights) @ value

    def operations(
        self, query: Queries, key: Keys, value: Values, mask: Mask = EVERYTHING, weights: Tensor | None = None
    ) -> Iterator[Work]:
        pairs = 2.0 * query.shape[0] * query.shape[2] * key.shape[2]
        yield Work(pairs * value.shape[3], (1 + value.requires_grad) * pairs * value.shape[3])
        if weights is None:
            yield Work(pairs * key.shape[3], pairs * key.shape[3])

    def weights(self, query: Queries, key: Keys, mask: Mask = EVERYTHING) -> Weights:
        allowed = mask.allowed(query.shape[2], key.shape[2], query.device)
        return softargmax(self.scores(query, key), allowed=allowed)

    def scored(self, query: Queries, key: Keys, mask: Mask = EVERYTHING) -> Scored:
        return Scored(self.scores(query, key), mask.allowed(query.shape[2], key.shape[2], query.device))

    def scores(self, query: Float[Tensor, "*lead T A"], key: Float[Tensor, "*lead S A"]) -> Float[Tensor, "*lead T S"]:
        """score · tanh(q + k) for every query and key."""
        return torch.tanh(query[..., :, None, :] + key[..., None, :, :]) @ self.score


class AdditiveAttention(nn.Module):
    """Maps of the query state and of the memory to `width`, around an additive core.

    The caller applies `query` to one state after the other and `key` to the memory once; calling the module takes
    queries and keys that are mapped already.
    """

    role = ATTENTION_MAPS

    def __init__(self, *, state_width: int, memory_width: int, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(state_width, width, bias=False)
        self.key = nn.Linear(memory_width, width)
        self.core = AdditiveCore(width)

    def forward(
        self,
        query: Float[Tensor, "B T A"],
        key: Float[Tensor, "B S A"],
        value: Float[Tensor, "B S W"],
        *,
        mask: Mask = EVERYTHING,
        weights: Float[Tensor, "B T S"] | None = None,
    ) -> Float[Tensor, "B T W"]:
        """What each query receives: the average of the values by its weights."""
        known = None if weights is None else weights[:, None]
        found: Tensor = self.core(query[:, None], key[:, None], value[:, None], mask, weights=known)
        return found[:, 0]
