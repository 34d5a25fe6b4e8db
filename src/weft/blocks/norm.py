"""Layer norm and RMS norm: every position scaled by its own statistics alone."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from weft.config import Choice, Positive


class LayerNorm(nn.Module):
    """(x − mean) / √(variance + ε) · weight + bias, over the last axis (Ba, Kiros & Hinton 2016)."""

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
    """x / √(mean x² + ε) · weight: no mean is taken off (Zhang & Sennrich 2019; T5, Llama)."""

    def __init__(self, width: int, *, eps: float = 1e-6) -> None:
        super().__init__()
        self.width, self.eps = width, eps
        self.weight = nn.Parameter(torch.ones(width))

    def extra_repr(self) -> str:
        return f"{self.width}, eps={self.eps}"

    def forward(self, x: Float[Tensor, "*lead D"]) -> Float[Tensor, "*lead D"]:
        work = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
        scale = torch.rsqrt(work.square().mean(-1, keepdim=True) + self.eps)
        return (work * scale).to(x.dtype) * self.weight


class NormConfig(Choice):
    """Which norm: `layer` or `rms`."""

    eps: Positive = 1e-5

    def build(self, width: int) -> nn.Module:
        """The norm for a stream of this width."""
        return LayerNorm(width, eps=self.eps)


class LayerNormConfig(NormConfig, kind="layer"):
    """Layer norm, with or without bias."""

    bias: bool = True

    def build(self, width: int) -> LayerNorm:
        return LayerNorm(width, eps=self.eps, bias=self.bias)


class RMSNormConfig(NormConfig, kind="rms"):
    """RMS norm."""

    eps: Positive = 1e-6

    def build(self, width: int) -> RMSNorm:
        return RMSNorm(width, eps=self.eps)
