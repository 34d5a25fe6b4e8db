"""Hard attention: each query takes exactly one value, that of its best key.

Three ways to learn through the choice:
argmax            no gradient reaches queries and keys (it is exactly zero); values learn
straight-through  forward the choice, backward the softmax (Bengio, Léonard & Courville 2013)
gumbel            in training the choice is drawn with the softmax's probabilities, backward as above
                  (Jang, Gu & Poole 2017, "Categorical Reparameterization with Gumbel-Softmax")
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from weft.blocks.attention.base import EVERYTHING, Heads, Keys, Lookup, Mask, Queries, Values, Weights, spread
from weft.blocks.attention.heads import HeadsConfig
from weft.blocks.attention.softmax import softargmax
from weft.config import Positive

Learning = Literal["argmax", "straight-through", "gumbel"]


class HardLookup(Lookup):
    """v[argmax(q·k)]; ties go to the first key. A query with nothing to look at receives 0.

    beta matters only for what is learned or drawn: it is the inverse temperature of the softmax behind
    the choice (None: 1/√key width).
    """

    def __init__(self, *, learning: Learning = "straight-through", beta: float | None = None) -> None:
        super().__init__()
        self.learning, self.beta = learning, beta

    def extra_repr(self) -> str:
        return f"learning={self.learning!r}, beta={'1/√K' if self.beta is None else self.beta}"

    def forward(self, query: Queries, key: Keys, value: Values, mask: Mask = EVERYTHING) -> Heads:
        value = spread(value, query.shape[1])
        logits, allowed = self._logits(query, key, mask)
        if self.training and self.learning == "gumbel":
            uniform = torch.rand_like(logits).clamp(min=torch.finfo(logits.dtype).tiny)
            logits = logits - (-uniform.log()).log()
        choice = _best(logits, allowed)
        chosen = value.gather(2, choice[..., None].expand(*choice.shape, value.shape[-1]))
        if allowed is not None:
            chosen = chosen.masked_fill(~allowed.any(-1, keepdim=True), 0.0)
        if self.learning == "argmax" or not torch.is_grad_enabled():
            return chosen
        soft = softargmax(logits, 1.0, allowed)
        return chosen + (soft - soft.detach()) @ value  # adds exactly 0 forward, the softmax's slope backward

    def weights(self, query: Queries, key: Keys, mask: Mask = EVERYTHING) -> Weights:
        logits, allowed = self._logits(query, key, mask)
        return _one_hot(_best(logits, allowed), allowed, logits)

    def _logits(self, query: Tensor, key: Tensor, mask: Mask) -> tuple[Tensor, Tensor | None]:
        beta = 1.0 / math.sqrt(query.shape[-1]) if self.beta is None else self.beta
        logits = beta * (query @ spread(key, query.shape[1]).transpose(-1, -2))
        if mask.bias is not None:
            logits = logits + mask.bias.to(logits.dtype)
        return logits, mask.allowed(query.shape[2], key.shape[2], query.device)


def _best(logits: Tensor, allowed: Tensor | None) -> Tensor:
    return (logits if allowed is None else logits.masked_fill(~allowed, -torch.inf)).argmax(-1)


def _one_hot(choice: Tensor, allowed: Tensor | None, like: Tensor) -> Tensor:
    hot = torch.zeros_like(like).scatter(-1, choice[..., None], 1.0)
    return hot if allowed is None else hot.masked_fill(~allowed, 0.0)


class HardConfig(HeadsConfig, kind="hard"):
    """One value per query; `learning` says how queries and keys learn through the choice."""

    learning: Learning = "straight-through"
    beta: Positive | None = None

    def lookup(self) -> HardLookup:
        return HardLookup(learning=self.learning, beta=self.beta)
