"""Which number type to compute in: bf16 where it is faster, float32 where it is a trap."""

from __future__ import annotations

import time

import torch

ROUNDS = 12
FASTER = 1.5  # times as fast, or it is not worth the rounding


def bf16_pays(device: torch.device) -> bool:
    """Measured by matrix products: without units for it, bf16 runs a hundred times slower than float32. The two take
    turns, and each counts by its best: on a busy machine a single moment says nothing."""
    pairs = [
        (torch.ones(128, 256, dtype=dtype, device=device), torch.ones(256, 128, dtype=dtype, device=device))
        for dtype in (torch.float32, torch.bfloat16)
    ]
    rounds = [[_seconds(a, b) for a, b in pairs] for _ in range(ROUNDS)]
    plain, short = (min(times) for times in zip(*rounds, strict=True))
    return plain > FASTER * short


def _seconds(a: torch.Tensor, b: torch.Tensor) -> float:
    began = time.perf_counter()
    float((a @ b).sum())  # waits for the device
    return time.perf_counter() - began
