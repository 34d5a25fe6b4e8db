"""Which number type to compute in: bf16 where it is faster, float32 where it is a trap."""

from __future__ import annotations

import time

import torch

FASTER = 1.5  # times as fast, or it is not worth the rounding


def bf16_pays(device: torch.device) -> bool:
    """Measured by matrix products: without units for it, bf16 runs a hundred times slower than float32."""
    speeds = []
    for dtype in (torch.float32, torch.bfloat16):
        a = torch.ones(128, 256, dtype=dtype, device=device)
        b = torch.ones(256, 128, dtype=dtype, device=device)
        times = [_seconds(a, b) for _ in range(3)]
        speeds.append(1 / min(times))
    return speeds[1] > FASTER * speeds[0]


def _seconds(a: torch.Tensor, b: torch.Tensor) -> float:
    began = time.perf_counter()
    float((a @ b).sum())  # waits for the device
    return time.perf_counter() - began
