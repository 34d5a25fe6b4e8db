"""T5's relative bias: one learned number per head and bucket of distances, added to the scores
(Raffel et al. 2020). Near distances have a bucket each, far ones share buckets on a log scale."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from weft.blocks.position.base import Position, PositionConfig, distances
from weft.config import Size
from weft.errors import ConfigError


def buckets_of(ahead: Int[Tensor, "..."], *, buckets: int, max_distance: int, two_way: bool) -> Int[Tensor, "..."]:
    """The bucket of each signed distance. One-way models give all that lies ahead bucket 0."""
    side = torch.zeros_like(ahead)
    if two_way:
        buckets //= 2
        side = (ahead > 0) * buckets
        distance = ahead.abs()
    else:
        distance = (-ahead).clamp(min=0)
    near = buckets // 2
    # float32, as in T5's own code: a wider type would put some far distances one bucket further
    far = near + (
        torch.log(distance.clamp(min=1).float() / near) / math.log(max_distance / near) * (buckets - near)
    ).to(ahead.dtype)
    return side + torch.where(distance < near, distance, far.clamp(max=buckets - 1))


class RelativeBias(Position):
    """bias[h, t, s] = weight[bucket(s − t), h]; T5 shares one table among all layers of a stack."""

    def __init__(self, heads: int, *, buckets: int = 32, max_distance: int = 128, two_way: bool = True) -> None:
        super().__init__()
        if buckets < 4 or buckets // (4 if two_way else 2) >= max_distance:
            given = f"{buckets} buckets for distances up to {max_distance}"
            raise ConfigError(given, expected="at least 4 buckets, and more distances than near buckets")
        self.buckets, self.max_distance, self.two_way = buckets, max_distance, two_way
        self.weight = nn.Parameter(torch.empty(buckets, heads))
        nn.init.normal_(self.weight, std=0.02)

    def extra_repr(self) -> str:
        return f"heads={self.weight.shape[1]}, buckets={self.buckets}, max_distance={self.max_distance}"

    def at_scores(self, asking: Int[Tensor, "*rows T"], answering: Int[Tensor, "*rows S"]) -> Float[Tensor, "R H T S"]:
        ahead = distances(asking, answering)
        bucket = buckets_of(ahead, buckets=self.buckets, max_distance=self.max_distance, two_way=self.two_way)
        return self.weight[bucket].permute(0, 3, 1, 2)


class RelativeConfig(PositionConfig, kind="relative"):
    """T5's relative bias. `two_way`: encoders distinguish ahead from behind, decoders are causal."""

    buckets: Size = 32
    max_distance: Size = 128
    two_way: bool = True

    def build(self, *, width: int, heads: int, head_width: int, max_length: int) -> RelativeBias:
        return RelativeBias(heads, buckets=self.buckets, max_distance=self.max_distance, two_way=self.two_way)
