"""Next-token prediction: every position is asked for the token that follows it."""

from __future__ import annotations

from typing import Protocol

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor


class LanguageModel(Protocol):
    """Tokens (B, T) → logits over the next token (B, T, V)."""

    def __call__(self, tokens: Tensor) -> Tensor: ...


def causal_loss(model: LanguageModel, windows: Int[Tensor, "B T1"]) -> tuple[Float[Tensor, ""], int]:
    """Summed cross-entropy in nats over windows of T + 1 tokens, and the number of predicted tokens.

    A sum and a count, not a mean: gradients over unequal batches, steps or processes then add up exactly.
    """
    inputs, targets = windows[:, :-1], windows[:, 1:]
    logits = model(inputs)
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum"), targets.numel()
