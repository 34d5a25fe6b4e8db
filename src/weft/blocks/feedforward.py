"""The feed-forward part: applied to each position alone. Plain or gated, with one of a few activations."""

from __future__ import annotations

from typing import Literal, get_args

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from weft.blocks.roles import FEED_FORWARD
from weft.config import Choice, Share, Size
from weft.errors import ConfigError, did_you_mean

Activation = Literal["relu", "squared-relu", "gelu", "gelu-tanh", "silu"]


def activate(x: Tensor, activation: Activation) -> Tensor:
    """One of: max(0, x); its square (So et al. 2021, Primer); GELU exact or by tanh; x·sigmoid(x)."""
    match activation:
        case "relu":
            return F.relu(x)
        case "squared-relu":
            return F.relu(x).square()
        case "gelu":
            return F.gelu(x)
        case "gelu-tanh":
            return F.gelu(x, approximate="tanh")
        case "silu":
            return F.silu(x)


def _known(activation: Activation) -> Activation:
    if activation not in get_args(Activation):
        raise ConfigError(f"unknown activation {activation!r}", advice=did_you_mean(activation, get_args(Activation)))
    return activation


class FeedForward(nn.Module):
    """down(activation(up(x))); the hidden width is usually four times the stream's."""

    role = FEED_FORWARD

    def __init__(
        self, width: int, ff_width: int, *, activation: Activation = "gelu", bias: bool = True, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.activation = _known(activation)
        self.up = nn.Linear(width, ff_width, bias=bias)
        self.down = nn.Linear(ff_width, width, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def extra_repr(self) -> str:
        return f"activation={self.activation!r}"

    def forward(self, x: Float[Tensor, "*lead D"]) -> Float[Tensor, "*lead D"]:
        return self.down(self.dropout(activate(self.up(x), self.activation)))


class GatedFeedForward(FeedForward):
    """down(activation(gate(x)) · up(x)) (Shazeer 2020, "GLU Variants"; T5 v1.1, Llama)."""

    def __init__(
        self, width: int, ff_width: int, *, activation: Activation = "silu", bias: bool = False, dropout: float = 0.0
    ) -> None:
        super().__init__(width, ff_width, activation=activation, bias=bias, dropout=dropout)
        self.gate = nn.Linear(width, ff_width, bias=bias)

    def forward(self, x: Float[Tensor, "*lead D"]) -> Float[Tensor, "*lead D"]:
        return self.down(self.dropout(activate(self.gate(x), self.activation) * self.up(x)))


class FeedForwardConfig(Choice):
    """Which feed-forward part: `plain` or `gated`. `ff_width` None is four times the width."""

    ff_width: Size | None = None
    dropout: Share = 0.0
    activation: Activation = "gelu"

    def build(self, width: int) -> nn.Module:
        """The part for a stream of this width."""
        return FeedForward(width, self.hidden(width), activation=self.activation, dropout=self.dropout)

    def hidden(self, width: int) -> int:
        """`ff_width`, or four times the width."""
        return 4 * width if self.ff_width is None else self.ff_width


class PlainConfig(FeedForwardConfig, kind="plain"):
    """Two maps and an activation."""

    bias: bool = True

    def build(self, width: int) -> FeedForward:
        hidden = self.hidden(width)
        return FeedForward(width, hidden, activation=self.activation, bias=self.bias, dropout=self.dropout)


class GatedConfig(FeedForwardConfig, kind="gated"):
    """Three maps: one gates another."""

    activation: Activation = "silu"
    bias: bool = False

    def build(self, width: int) -> GatedFeedForward:
        hidden = self.hidden(width)
        return GatedFeedForward(width, hidden, activation=self.activation, bias=self.bias, dropout=self.dropout)
