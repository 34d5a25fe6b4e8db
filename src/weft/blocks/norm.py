"""Layer norm and RMS norm: every position scaled by its own statistics alone."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from weft.blocks.roles import NORMS
from weft.config import Amount, Choice


class LayerNorm(nn.Module):
    """(x − mean) / √(variance + ε) · weight + bias, over the last axis (Ba, Kiros & Hinton 2016)."""

    role = NORMS

    def __init__(self, width: int, *, eps: float = 1e-5, bias: bool = True) -> None:
        super().__init__()
        self.width, self.eps = width, eps
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def extra_repr(self) -> str:
        return f"{self.width}, eps={self.eps}, bias={self.bias is not None}"

    def forward(self, x: Float[Tensor, "*lead D"]) -> Float[Tensor, "*lead D"]:
        return F.layer_norm(x, (self.width,), self.weight, self.bias, self.eps)


class RMSNorm(nn.Module):
    """x / √(mean x² + ε) · weight: no mean is taken off (Zhang & Sennrich 2019; T5, Llama).

    `learned=False` leaves the weight out: the map that follows can learn the scale as well.
    """

    role = NORMS

    def __init__(self, width: int, *, eps: float = 1e-6, learned: bool = True) -> None:
        super().__init__()
        self.width, self.eps = width, eps
        self.weight = nn.Parameter(torch.ones(width)) if learned else None

    def extra_repr(self) -> str:
        return f"{self.width}, eps={self.eps}, learned={self.weight is not None}"

    def forward(self, x: Float[Tensor, "*lead D"]) -> Float[Tensor, "*lead D"]:
        work = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
        scale = torch.rsqrt(work.square().mean(-1, keepdim=True) + self.eps)
        y = (work * scale).to(x.dtype)
        return y if self.weight is None else y * self.weight


class NormConfig(Choice):
    """Which norm: `layer` or `rms`."""

    eps: Amount = 1e-5

    def build(self, width: int) -> nn.Module:
        """The norm for a stream of this width."""
        return LayerNorm(width, eps=self.eps)


class LayerNormConfig(NormConfig, kind="layer"):
    """Layer norm, with or without bias."""

    bias: bool = True

    def build(self, width: int) -> LayerNorm:
        return LayerNorm(width, eps=self.eps, bias=self.bias)


class RMSNormConfig(NormConfig, kind="rms"):
    """RMS norm, with or without a learned weight."""

    eps: Amount = 1e-6
    learned: bool = True

    def build(self, width: int) -> RMSNorm:
        return RMSNorm(width, eps=self.eps, learned=self.learned)
