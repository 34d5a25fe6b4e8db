"""Choosing a model size, a batch and a number of steps for this data, this time and this machine.

The ladder below was measured (docs/decisions/004-default-gpt.md): for a given amount of computing, the
size that reached the lowest held-out loss on texts of about a megabyte. What a user sets is kept; the
rest follows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from weft.cost import cost_of
from weft.models import GPTConfig
from weft.objectives import causal_loss
from weft.training import OptimizerConfig


@dataclass(frozen=True)
class Rung:
    """A size that suits up to `flops` operations of training."""

    flops: float
    width: int
    depth: int
    heads: int
    length: int
    batch: int


LADDER = (
    Rung(4e12, 128, 3, 4, 64, 12),
    Rung(2e13, 128, 4, 4, 128, 12),
    Rung(8e13, 192, 5, 6, 128, 16),
    Rung(3e14, 256, 6, 8, 256, 8),
    Rung(3e15, 384, 6, 6, 256, 16),
    Rung(1e30, 512, 8, 8, 512, 16),
)


def rung_for(flops: float) -> Rung:
    """The size for this much computing."""
    return next(rung for rung in LADDER if flops <= rung.flops)


def machine_speed() -> float:
    """Operations a second that training reaches here: half of what a plain matrix product does."""
    a, b = torch.randn(512, 256), torch.randn(256, 512)
    best = min(_seconds(lambda: a @ b, 20) for _ in range(3))
    return 0.5 * 2 * 512 * 256 * 512 / best


def _seconds(work: Callable[[], Any], repeats: int) -> float:
    began = time.perf_counter()
    for _ in range(repeats):
        work()
    return (time.perf_counter() - began) / repeats


def seconds_per_step(
    config: GPTConfig, optimizer: OptimizerConfig, batch: Callable[[np.ndarray], Tensor], size: int
) -> float:
    """Measured on a scratch model, which is thrown away: the median of a few steps after a warm-up."""
    state = torch.get_rng_state()
    model = config.build()
    rule = optimizer.build(model)
    times = []
    for i in range(7):
        began = time.perf_counter()
        summed, count = causal_loss(model, batch(np.arange(size) + i * size))
        torch.autograd.backward(summed / count)
        rule.step()
        rule.zero_grad()
        times.append(time.perf_counter() - began)
    torch.set_rng_state(state)
    return sorted(times[2:])[2]


def seconds_to_evaluate(config: GPTConfig, tokens: int, speed: float) -> float:
    """Forward alone is a third of a step; shapes are large, so the speed is that of plain products."""
    cost = cost_of(config, batch=1, length=config.max_length)
    return tokens * cost.flops / cost.tokens / 3 / speed


def warnings(plan: dict[str, Any]) -> list[str]:
    """What a plan in numbers already tells about the result."""
    told = []
    if plan["tokens"] < 10_000:
        told.append(f"{plan['tokens']:,} tokens are very little to learn from: expect babble")
    if plan["epochs"] > 10:
        told.append("the text will be read more than ten times: expect it to be learned by heart")
    return told
