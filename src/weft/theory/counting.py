"""Counting: how many multiplications a call makes, and how many numbers a part learns."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode


def multiplications(call: Callable[[], object]) -> dict[str, int]:
    """Of one call: those of the maps (a matrix of weights on every token), of pairs (products of two computed
    tables: scores and mixing, sums over keys), and of convolutions. Attention goes its plain way, to be seen."""
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter, sdpa_kernel(SDPBackend.MATH):
        call()
    found = {"maps": 0, "pairs": 0, "convolutions": 0}
    for operation, flops in counter.get_flop_counts()["Global"].items():
        name = str(operation).split(".")[-1]
        kind = "maps" if name in ("mm", "addmm") else "pairs" if name in ("bmm", "baddbmm") else "convolutions"
        found[kind] += flops // 2  # a multiplication and an addition
    return found


def derivatives(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Of every output to every input: the shape of the output, then that of the input."""
    found: Tensor = torch.autograd.functional.jacobian(function, x)  # type: ignore[no-untyped-call]
    return found


def learned(module: nn.Module) -> int:
    """How many numbers it learns; those it shares are counted once."""
    return sum(p.numel() for p in module.parameters())


def largest(difference: Tensor) -> float:
    """The largest absolute entry."""
    return float(difference.detach().abs().max())
