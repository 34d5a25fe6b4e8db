"""How well a language model predicts a text: nats per token, and bits per byte, which compare across
tokenizers."""

from __future__ import annotations

import math

import torch
from torch import nn

from weft.data import Sweep, TokenFile
from weft.objectives import causal_loss
from weft.training import ALONE, Ranks


def evaluate_text(
    model: nn.Module, tokens: TokenFile, length: int, *, device: torch.device, ranks: Ranks = ALONE, rows: int = 0
) -> dict[str, float]:
    """Every token of the text is predicted once, in windows of `length`, the work shared between ranks."""
    rows = rows or max(1, 4096 // length)
    sweep = Sweep(tokens, length, rows)
    sums = torch.zeros(2, dtype=torch.float64)
    model.eval()
    with torch.no_grad():
        for windows in sweep[ranks.rank :: ranks.world]:
            summed, count = causal_loss(model, torch.from_numpy(windows).to(device))
            sums += torch.tensor([summed.item(), count], dtype=torch.float64)
    ranks.sum([sums])
    loss = float(sums[0] / sums[1])
    return {"validation_loss": loss, "bits_per_byte": float(sums[0]) / math.log(2) / max(1, tokens.bytes)}
