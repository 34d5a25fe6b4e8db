"""Random-feature attention: softmax attention, estimated by positive random features at linear cost.

exp(q·k) = E exp(ω·q − |q|²/2) · exp(ω·k − |k|²/2) for ω from a standard normal distribution (Choromanski et al. 2021,
"Rethinking Attention with Performers"): m draws of ω are m features, and the error falls as 1/√m. Draws that are
orthogonal to each other err less. Queries and keys are those of softmax attention, so its weights can be used directly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from weft.blocks.attention.base import EVERYTHING, Heads, Keys, Mask, Queries, Values
from weft.blocks.attention.kernel import KernelAttention, KernelConfig, KernelState
from weft.blocks.attention.softmax import inverse_temperature
from weft.blocks.work import Work
from weft.config import Amount, Count, Size
from weft.errors import ConfigError


def directions(count: int, width: int, seed: int) -> Float[Tensor, "F K"]:
    """So many normal draws, in groups of `width` that are orthogonal to each other (each alone is still normal)."""
    chance = torch.Generator().manual_seed(seed)

    def normal() -> Tensor:
        return torch.randn(width, width, dtype=torch.float64, device="cpu", generator=chance)

    groups = []
    for first in range(0, count, width):
        square, signs = torch.linalg.qr(normal())
        square = square * signs.diagonal().sign()  # without it the directions would not be uniform
        lengths = normal().norm(dim=1)
        groups.append((square * lengths[:, None])[: count - first])
    return torch.cat(groups)


class RandomFeatureAttention(KernelAttention):
    """exp(ω·x − |x|²/2) as features, x = √β·q or √β·k.

    count   how many draws of ω
    beta    inverse temperature of the softmax that is estimated; None is 1/√(key width)
    seed    which draws
    redraw  in training, other ones after so many calls; 0: always the same
    """

    rows = "sums to one"

    def __init__(self, *, count: int, width: int, beta: float | None = None, seed: int = 0, redraw: int = 0) -> None:
        super().__init__()
        self.beta, self.seed, self.redraw = beta, seed, redraw
        # parameters that do not learn: they are part of what is saved
        self.directions = nn.Parameter(torch.empty(count, width), requires_grad=False)
        self.calls = nn.Parameter(torch.zeros(()), requires_grad=False) if redraw else None
        self._draw(0)

    def extra_repr(self) -> str:
        return (
            f"features={len(self.directions)}, beta={'1/√K' if self.beta is None else self.beta}, redraw={self.redraw}"
        )

    def feature_count(self, key_width: int) -> int:
        return len(self.directions)

    def operations(self, query: Queries, key: Keys, value: Values, mask: Mask = EVERYTHING) -> Iterator[Work]:
        drawn = 2.0 * (query.numel() + key.numel()) * len(self.directions)
        yield Work(drawn, drawn)  # directions do not learn
        yield from super().operations(query, key, value, mask)

    def features(self, x: Tensor) -> tuple[Tensor, Tensor]:
        scaled = x * inverse_temperature(self.beta, x) ** 0.5
        exponents = scaled @ self.directions.to(x.dtype).T - scaled.square().sum(-1, keepdim=True) / 2
        top = exponents.detach().amax(-1)
        return (exponents - top[..., None]).exp(), top

    def _attend(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Mask, before: KernelState | None
    ) -> tuple[Heads, KernelState]:
        if self.calls is not None and self.training:
            self._count_call(self.calls.data)
        return super()._attend(query, key, value, mask, before)

    def _count_call(self, calls: Tensor) -> None:
        calls += 1
        turn, rest = divmod(int(calls), self.redraw)
        if rest == 0:
            self._draw(turn)

    def _draw(self, turn: int) -> None:
        if not self.directions.is_meta:
            count, width = self.directions.shape
            self.directions.data.copy_(directions(count, width, self.seed + turn * 2**20))


class RandomFeaturesConfig(KernelConfig, kind="random-features"):
    """Softmax attention estimated by `features` random ones (None: 2·K·ln K for keys of width K, as in the paper).

    `redraw`: in training, others after so many calls; `seed`: which ones. Every layer has its own.
    """

    description = "Softmax attention, estimated by positive random features at linear cost"
    cost = "N·features·K for sums over keys, no pairs"

    features: Size | None = None
    redraw: Count = 0
    seed: Count = 0
    beta: Amount | None = None

    def check(self) -> None:
        super().check()
        if self.beta is not None and not self.beta < math.inf:
            raise ConfigError(f"beta = {self.beta}", expected="a finite number: its features would be infinite")

    def for_layer(self, number: int) -> RandomFeaturesConfig:
        return replace(self, seed=self.seed + number)

    def core_for(self, width: int) -> RandomFeatureAttention:
        return self.core_for_keys(self.sizes(width)[1])

    def core_for_keys(self, key_width: int) -> RandomFeatureAttention:
        count = self._count(key_width)
        return RandomFeatureAttention(count=count, width=key_width, beta=self.beta, seed=self.seed, redraw=self.redraw)

    def feature_count(self, width: int) -> int:
        return self._count(self.sizes(width)[1])

    def _count(self, key_width: int) -> int:
        return self.features or max(8, round(2 * key_width * math.log(key_width)))
