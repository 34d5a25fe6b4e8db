"""Hard attention: each query takes exactly one value, that of its best key.

Three ways to learn through the choice:
argmax            no gradient reaches queries and keys (it is exactly zero); values learn
straight-through  forward the choice, backward the softmax (Bengio, Léonard & Courville 2013)
gumbel            in training the choice is drawn with the softmax's probabilities, backward as above
                  (Jang, Gu & Poole 2017, "Categorical Reparameterization with Gumbel-Softmax")
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import torch
from torch import Tensor

from weft.blocks.attention.base import EVERYTHING, AttentionCore, Heads, Keys, Mask, Queries, Values, Weights, spread
from weft.blocks.attention.heads import HeadsConfig
from weft.blocks.attention.softmax import finite, inverse_temperature, products, softargmax, work_of_pairs
from weft.blocks.work import Work
from weft.config import Amount
from weft.errors import UnsupportedError

Learning = Literal["argmax", "straight-through", "gumbel"]


class HardAttention(AttentionCore):
    """v[argmax(q·k)]; ties go to the first key. A query without an allowed key receives 0.

    beta matters only for what is learned or drawn: it is the inverse temperature of the softmax behind
    the choice (None: 1/√key width).
    """

    rows = "one-hot"

    def __init__(self, *, learning: Learning = "straight-through", beta: float | None = None) -> None:
        super().__init__()
        self.learning, self.beta = learning, beta

    def extra_repr(self) -> str:
        return f"learning={self.learning!r}, beta={'1/√K' if self.beta is None else self.beta}"

    def forward(self, query: Queries, key: Keys, value: Values, mask: Mask = EVERYTHING) -> Heads:
        value = spread(value, query.shape[1])
        scores, beta, allowed = self._scores(query, key, mask)
        if self._draws and math.isfinite(beta):
            uniform = torch.rand_like(scores).clamp(min=torch.finfo(scores.dtype).tiny)
            scores, beta = beta * scores - (-uniform.log()).log(), 1.0
        choice = _best(scores, allowed)
        chosen = value.gather(2, choice[..., None].expand(*choice.shape, value.shape[-1]))
        if allowed is not None:
            chosen = chosen.masked_fill(~allowed.any(-1, keepdim=True), 0.0)
        if self.learning == "argmax" or not torch.is_grad_enabled():
            return chosen
        soft = softargmax(scores, beta, allowed).to(value.dtype)
        return chosen + (soft - soft.detach()) @ value  # adds exactly 0 forward, the softmax's gradient backward

    def operations(self, query: Queries, key: Keys, value: Values, mask: Mask = EVERYTHING) -> Iterator[Work]:
        rows, heads, asking, width = query.shape
        if self.teaches_queries:
            yield work_of_pairs(rows, heads, asking, key.shape[2], (width, value.shape[3]))
        else:
            yield Work(2.0 * query.numel() * key.shape[2], 0.0)  # a choice has no gradient

    @property
    def teaches_queries(self) -> bool:
        return self.learning != "argmax"

    def weights(self, query: Queries, key: Keys, mask: Mask = EVERYTHING) -> Weights:
        if self._draws:
            raise UnsupportedError("weights of a drawn choice", expected="eval mode: every call draws anew")
        scores, _, allowed = self._scores(query, key, mask)
        hot = torch.zeros_like(scores, dtype=query.dtype).scatter(-1, _best(scores, allowed)[..., None], 1.0)
        return hot if allowed is None else hot.masked_fill(~allowed, 0.0)

    @property
    def _draws(self) -> bool:
        return self.training and self.learning == "gumbel"

    def _scores(self, query: Tensor, key: Tensor, mask: Mask) -> tuple[Tensor, float, Tensor | None]:
        """Scores to choose from, their inverse temperature, and what is allowed. Without a bias the
        choice does not depend on the temperature, so it is made from the unscaled scores."""
        scores, beta = products(query, key), inverse_temperature(self.beta, query)
        if mask.bias is not None:
            if math.isinf(beta):
                raise UnsupportedError("a bias at infinite beta", expected="no bias: it would have no effect")
            scores, beta = beta * scores + finite(mask.bias, query.dtype), 1.0
        return scores, beta, mask.allowed(query.shape[2], key.shape[2], query.device)


def _best(scores: Tensor, allowed: Tensor | None) -> Tensor:
    return (scores if allowed is None else scores.masked_fill(~allowed, -torch.inf)).argmax(-1)


class HardConfig(HeadsConfig, kind="hard"):
    """One value per query; `learning` says how queries and keys learn through the choice."""

    description = "Each query takes exactly one value, that of its best key"
    cost = "N² pairs are compared, one value each is taken"

    learning: Learning = "straight-through"
    beta: Amount | None = None

    def core(self) -> HardAttention:
        return HardAttention(learning=self.learning, beta=self.beta)
