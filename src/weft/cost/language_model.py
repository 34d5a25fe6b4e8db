"""The cost of one training step of a language model, counted from its shapes without running it."""

from __future__ import annotations

from dataclasses import dataclass

from weft.models import BERTConfig, GPTConfig
from weft.models.bert import MaskedConfig

BYTES = 4  # float32


@dataclass(frozen=True)
class Cost:
    """Of one step on `tokens` tokens: multiplications and additions, and bytes at the peak."""

    parameters: int
    tokens: int
    flops: float
    memory: int


def cost_of(config: GPTConfig | BERTConfig, *, batch: int, length: int, optimizer_copies: float = 1.5) -> Cost:
    """Forward and backward cost three times the forward part; scores and mixing cost 4·T·width a token,
    halved by a causal mask. Memory: weights, gradients, optimizer state and what backward needs."""
    model = config.skeleton()
    parameters = sum(p.numel() for p in model.parameters())
    maps = sum(p.numel() for name, p in model.named_parameters() if p.dim() == 2 and not name.startswith("tokens"))
    tokens = batch * length
    seen = length / 2 if isinstance(config, GPTConfig) else length
    flops = 3.0 * tokens * (2 * maps + 4 * seen * config.width * config.depth)
    kept = 3 * config.vocab_size * _asked(config)
    per_token = config.depth * (18 * config.width + 3 * config.feed_forward.hidden(config.width)) + kept
    memory = int(BYTES * (parameters * (2 + optimizer_copies) + tokens * per_token))
    return Cost(parameters, tokens, flops, memory)


def _asked(config: GPTConfig | BERTConfig) -> float:
    """The share of the tokens for which there are logits over the vocabulary."""
    if isinstance(config, GPTConfig):
        return 1.0
    return 0.15 if isinstance(config.head, MaskedConfig) else 0.0
