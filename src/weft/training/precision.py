"""Which number type to compute in: bf16 where there are units for it, float32 where it is a trap.

It is asked and not measured: two runs with the same words must not differ because the machine was busy for a moment.
Without units for it, bf16 runs a hundred times slower than float32. Processors that only have instructions for it
(AVX-512 BF16) were measured too: 2.7 times as fast in a large product, 1.06 times in a training step of width 128,
which is not worth the rounding. Those with tiles (AMX) are many times faster.
"""

from __future__ import annotations

import torch


def bf16_pays(device: torch.device) -> bool:
    """Whether bf16 is clearly faster there."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type == "cpu":
        has_tiles = getattr(torch.cpu, "_is_amx_tile_supported", None)  # not public, so it may be gone one day
        return has_tiles is not None and bool(has_tiles())
    return False
