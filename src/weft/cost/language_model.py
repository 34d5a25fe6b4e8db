"""The cost of one training step of a language model, counted from its shapes without running it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any, cast

from weft.models import BERTConfig, GPTConfig, ModelConfig
from weft.models.bert import MaskedConfig

BYTES = 4  # float32


@dataclass(frozen=True)
class Cost:
    """Of one step on `tokens` tokens: multiplications and additions, and bytes at the peak."""

    parameters: int
    tokens: int
    flops: float
    memory: int


@singledispatch
def cost_of(config: ModelConfig, *, batch: int, length: int, optimizer_copies: float = 1.5) -> Cost:
    """Forward and backward cost three times the forward part; scores and mixing cost 4·width a token for each key that
    it is compared with, which its attention kind knows. Memory: weights, gradients, optimizer state and what backward
    needs. Families that are no Transformers count in their own way, and register it (`cost_of.register`).

    A model that reads one text and writes another has `batch` pairs of texts of `length` tokens each; `tokens` counts
    one side.
    """
    sizes = cast(Any, config)
    model = config.skeleton()
    parameters = sum(p.numel() for p in model.parameters())
    maps = sum(p.numel() for name, p in model.named_parameters() if p.dim() == 2 and "tokens." not in name)
    if writes(config) and getattr(config, "tied", not isinstance(config, GPTConfig)):
        maps += sizes.vocab_size * sizes.width  # the table of token vectors is the head too
    tokens = batch * length
    seen = sizes.attention.seen(length, sizes.width, causal=isinstance(config, GPTConfig))
    depth = layers(config)
    flops = 3.0 * tokens * (2 * maps + 4 * seen * sizes.width * depth)
    per_token = depth * (18 * sizes.width + 3 * sizes.feed_forward.hidden(sizes.width))
    per_token += 3 * sizes.vocab_size * _asked(config)
    memory = int(BYTES * (parameters * (2 + optimizer_copies) + tokens * per_token))
    return Cost(parameters, tokens, flops, memory)


def layers(config: ModelConfig) -> int:
    """All of them; a layer that writes and looks at a memory counts as one and a half."""
    sizes = cast(Any, config)
    writing = getattr(config, "writing", 0)
    return int(sizes.depth + 1.5 * writing)


def writes(config: ModelConfig) -> bool:
    """Whether it gives logits over the vocabulary at every token."""
    return not isinstance(config, BERTConfig)


def _asked(config: ModelConfig) -> float:
    """The share of the tokens for which there are logits over the vocabulary."""
    if writes(config):
        return 1.0
    assert isinstance(config, BERTConfig)
    return 0.15 if isinstance(config.head, MaskedConfig) else 0.0
