"""Softmax attention: each position asks, and receives the average of the values, weighted by
softargmax(β·q·k). The 2017 kind (Vaswani et al., "Attention Is All You Need"), also called full."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

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
    Weights,
    spread,
)
from weft.blocks.attention.heads import HeadsConfig
from weft.blocks.work import Work
from weft.config import Amount, Share
from weft.errors import ConfigError, UnsupportedError

MAX_FINITE_BETA = 1e30  # larger ones count as infinite: scaled scores would overflow


def softargmax(
    scores: Float[Tensor, "*lead S"], beta: float = 1.0, allowed: Bool[Tensor, "*mask S"] | None = None
) -> Float[Tensor, "*lead S"]:
    """exp(β·sᵢ) / Σⱼ exp(β·sⱼ) over the allowed entries of the last axis.

    β = 0 is the plain average, β = ∞ the argmax (ties share). Never NaN for scores that are numbers or
    infinite; a row with nothing allowed is all zeros. Half precision is computed in float32.
    """
    if not beta >= 0:
        raise ConfigError(f"beta = {beta}", expected="a number from 0 to infinity")
    beta = math.inf if beta > MAX_FINITE_BETA else beta
    work = wide(scores)
    limit = torch.finfo(work.dtype).max / max(1.0, beta if math.isfinite(beta) else 1.0)
    work = work.clamp(-limit, limit)  # ∞ − ∞ inside the softmax would be NaN
    if math.isinf(beta):
        candidates = work if allowed is None else work.masked_fill(~allowed, -torch.inf)
        top = (candidates == candidates.amax(-1, keepdim=True)).to(work.dtype)
        weights = top if allowed is None else top.masked_fill(~allowed, 0.0)
        return (weights / weights.sum(-1, keepdim=True).clamp(min=1)).to(scores.dtype)
    scaled = beta * work
    if allowed is None:
        return scaled.softmax(-1).to(scores.dtype)
    # An empty row is opened for the softmax and cleared after it: −∞ everywhere would give NaN, also in
    # the gradient (pytorch#41508).
    closed = ~allowed & allowed.any(-1, keepdim=True)
    return scaled.masked_fill(closed, -torch.inf).softmax(-1).masked_fill(~allowed, 0.0).to(scores.dtype)


def wide(x: Tensor) -> Tensor:
    """Half precision as float32: sums and products in half lose what the fused kernel keeps."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def unrounded(device: torch.device) -> AbstractContextManager[object]:
    """Inside it nothing is rounded to half precision by itself; there are devices, such as `meta`, that never do."""
    available = torch.amp.is_autocast_available(device.type)
    return torch.autocast(device.type, enabled=False) if available else nullcontext()


def products(query: Queries, key: Keys) -> Float[Tensor, "B H T S"]:
    """q·k for every query and key, in at least float32."""
    return wide(query) @ wide(spread(key, query.shape[1])).transpose(-1, -2)


def finite(bias: Tensor, dtype: torch.dtype) -> Tensor:
    """The bias in another type without becoming infinite there: −1e9 is no prohibition in float16."""
    limits = torch.finfo(dtype)
    return bias.to(dtype) if bias.dtype == dtype else bias.clamp(limits.min, limits.max).to(dtype)


def inverse_temperature(beta: float | None, query: Tensor) -> float:
    """β as given, or 1/√(key width); beyond 1e30 it is ∞."""
    if beta is None:
        return 1.0 / math.sqrt(query.shape[-1])
    return math.inf if is_choice(beta) else beta


def temperature_of_softmax(beta: float | None, query: Tensor) -> float:
    """The same; refused at β = ∞, where there is no softmax."""
    beta = inverse_temperature(beta, query)
    if math.isinf(beta):
        raise UnsupportedError("argmax (beta = ∞): it takes no softmax")
    return beta


def renormalise(weights: Float[Tensor, "*lead S"], allowed: Bool[Tensor, "*mask S"]) -> Float[Tensor, "*lead S"]:
    """The other way to mask: set forbidden weights to zero after the softmax, divide by what is left.

    Equal to masking before the softmax, to rounding, until the forbidden scores lead by so much that the
    allowed weights underflow (about 80 in float32); then nothing is left and the row is zero. No module
    uses it: what is forbidden still passes through the softmax, so a causal model would leak a rounding.
    """
    left = weights.masked_fill(~allowed, 0.0)
    total = left.sum(-1, keepdim=True)
    return left / total.masked_fill(total == 0, 1.0)


def is_choice(beta: float | None) -> bool:
    """Whether the weights are those of an argmax, through which no gradient reaches scores."""
    return beta is not None and beta > MAX_FINITE_BETA


def work_of_pairs(
    rows: int,
    heads: int,
    asking: int,
    answering: int,
    widths: tuple[int, int],
    *,
    causal: bool = False,
    choice: bool = False,
) -> Work:
    """Scores of all pairs, and values weighed by them, for keys and values of these widths."""
    pairs = 2.0 * rows * heads * asking * answering
    forward = pairs * sum(widths)
    unseen = (asking - 1) / (2 * answering) if causal and asking > 1 else 0.0
    return Work(forward, pairs * widths[1] if choice else 2 * forward, unseen=forward * unseen)


class SoftmaxAttention(AttentionCore):
    """softargmax(β·q·k + bias)·v, by torch's fused kernel; `weights` is the explicit path.

    beta     inverse temperature; None is 1/√(key width)
    dropout  share of the weights dropped in training
    """

    rows = "sums to one"

    def __init__(self, *, beta: float | None = None, dropout: float = 0.0) -> None:
        super().__init__()
        self.beta, self.dropout = beta, dropout

    def extra_repr(self) -> str:
        return f"beta={'1/√K' if self.beta is None else self.beta}, dropout={self.dropout}"

    def forward(self, query: Queries, key: Keys, value: Values, mask: Mask = EVERYTHING) -> Heads:
        beta = inverse_temperature(self.beta, query)
        dropout = self.dropout if self.training else 0.0
        if beta == 0 or math.isinf(beta):  # the kernel scales −∞ and 0 too, and would give NaN
            weights = F.dropout(self.weights(query, key, mask), dropout).to(value.dtype)
            return weights @ spread(value, query.shape[1])
        asking, answering = query.shape[2], key.shape[2]
        grouped = query.shape[1] != key.shape[1]
        if mask.is_everything or (mask.is_causal_only and asking in (1, answering)):
            # SDPA's own causal flag aligns top-left, so it serves only when nothing is cached; a single
            # query is at the last key and sees everything.
            causal = mask.causal and asking > 1
            return F.scaled_dot_product_attention(
                query, key, value, dropout_p=dropout, is_causal=causal, scale=beta, enable_gqa=grouped
            )
        additive, empty = _additive(mask, asking, answering, query)
        heads = F.scaled_dot_product_attention(
            query, key, value, attn_mask=additive, dropout_p=dropout, scale=beta, enable_gqa=grouped
        )
        return heads if empty is None else heads.masked_fill(empty, 0.0)

    def operations(self, query: Queries, key: Keys, value: Values, mask: Mask = EVERYTHING) -> Iterator[Work]:
        rows, heads, asking, width = query.shape
        widths, choice = (width, value.shape[3]), not self.teaches_queries
        yield work_of_pairs(rows, heads, asking, key.shape[2], widths, causal=mask.causal, choice=choice)

    @property
    def teaches_queries(self) -> bool:
        return not is_choice(self.beta)

    def weights(self, query: Queries, key: Keys, mask: Mask = EVERYTHING) -> Weights:
        scores, beta = products(query, key), inverse_temperature(self.beta, query)
        if mask.bias is not None:
            if math.isinf(beta):
                raise UnsupportedError("a bias at infinite beta", expected="no bias: it would have no effect")
            scores, beta = beta * scores + finite(mask.bias, query.dtype), 1.0
        return softargmax(scores, beta, mask.allowed(query.shape[2], key.shape[2], query.device)).to(query.dtype)

    def scored(self, query: Queries, key: Keys, mask: Mask = EVERYTHING) -> Scored:
        scores = temperature_of_softmax(self.beta, query) * products(query, key)
        if mask.bias is not None:
            scores = scores + finite(mask.bias, query.dtype)
        return Scored(scores, mask.allowed(query.shape[2], key.shape[2], query.device))


def _additive(mask: Mask, asking: int, answering: int, like: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """The mask as SDPA takes it, and which rows are empty. Those are opened here and cleared by the
    caller, because not every backend of SDPA gives zero and finite gradients for them."""
    allowed = mask.allowed(asking, answering, like.device)
    if allowed is None:
        return (None if mask.bias is None else finite(mask.bias, like.dtype)), None
    empty = ~allowed.any(-1, keepdim=True)
    if mask.bias is None:
        return allowed | empty, empty
    return finite(mask.bias, like.dtype).masked_fill(~allowed, -torch.inf).masked_fill(empty, 0.0), empty


class SoftmaxConfig(HeadsConfig, kind="softmax", aliases=("full",)):
    """Full attention. `beta`: inverse temperature (None: 1/√head width; T5 uses 1)."""

    description = "Each position asks, and receives the average of the values, weighted by softargmax(β·q·k)"
    cost = "N² pairs"

    beta: Amount | None = None
    dropout: Share = 0.0

    def core(self) -> SoftmaxAttention:
        return SoftmaxAttention(beta=self.beta, dropout=self.dropout)

    @classmethod
    def like(cls, other: AttentionConfig) -> SoftmaxConfig:
        """With the heads, widths and temperature of another kind."""
        return cls(**{name: value for name, value in other.changed().items() if name in cls.__dataclass_fields__})
