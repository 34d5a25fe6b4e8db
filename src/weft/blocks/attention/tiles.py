"""Softmax attention over a pattern of places, in tiles: what nobody may look at is never computed.

A pattern covers its pairs (query, key) by tiles, each a block of queries with a run of keys, so the cost is that of the
pairs and not of the square. Tiles are worked off one after the other with a running softmax (Milakov & Gimelshein
2018, "Online normalizer calculation for softmax"), and the backward pass computes them again instead of keeping them
(Dao et al. 2022, "FlashAttention"): neither direction holds more scores than one tile has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from weft.blocks.attention.base import Heads, Queries

Places = slice | Tensor  # along the row: a run of them, or some by their numbers


@dataclass(frozen=True, eq=False)
class Tile:
    """A block of queries with the keys that some of them see.

    last       the last key's place; −1: keys that are no places of the row, and never padding
    forbidden  (queries, keys): which pairs are not part of it; None: all are
    """

    query: Places
    key: Places
    last: int
    forbidden: Bool[Tensor, "Q S"] | None = None


@dataclass(frozen=True, eq=False)
class Tiling:
    """Tiles that hold each pair of a pattern once, and how scores become weights.

    lengths   how many keys of each row are real; None: all of them
    shortest  the smallest of them
    """

    tiles: Sequence[Tile]
    beta: float
    lengths: Tensor | None = None
    shortest: int = 0
    dropout: float = 0.0
    seed: int = 0

    def scores(self, tile: Tile, query: Tensor, key: Tensor) -> Float[Tensor, "B H Q S"]:
        """β·q·k of a tile, −∞ where it is forbidden."""
        scores = torch.matmul(query, key.mT)
        scores = scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores
        scores.mul_(self.beta)
        if tile.forbidden is not None:
            scores.masked_fill_(tile.forbidden, -torch.inf)
        if self.lengths is not None and tile.last >= self.shortest:
            places = torch.arange(tile.last + 1, device=key.device)[tile.key]
            scores.masked_fill_(places >= self.lengths[:, None, None, None], -torch.inf)
        return scores

    def dropped(self, weights: Tensor, number: int) -> Tensor:
        """The weights of a tile with some dropped, the same ones whenever it is asked."""
        if not self.dropout:
            return weights
        chance = torch.Generator(weights.device).manual_seed((self.seed + number) % 2**63)
        kept = torch.empty_like(weights).bernoulli_(1 - self.dropout, generator=chance)
        return weights * kept.div_(1 - self.dropout)


def attend(query: Queries, key: Tensor, value: Tensor, tiling: Tiling) -> Heads:
    """What each query receives; keys and values have as many heads as queries. A query without a key receives 0."""
    return _Attend.apply(query, key, value, tiling)  # type: ignore[no-untyped-call]


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, query: Tensor, key: Tensor, value: Tensor, tiling: Tiling) -> Tensor:
        wide = torch.float32 if query.dtype in (torch.float16, torch.bfloat16) else query.dtype
        found = query.new_zeros(*query.shape[:3], value.shape[3], dtype=wide)
        top = query.new_full((*query.shape[:3], 1), -torch.inf, dtype=wide)  # the largest score so far
        total = torch.zeros_like(top)  # and the sum of exp(score − top)
        for number, tile in enumerate(tiling.tiles):
            asking = tile.query
            scores = tiling.scores(tile, query[:, :, asking], key[:, :, tile.key])
            before = top[:, :, asking]
            now = torch.maximum(before, scores.amax(-1, keepdim=True))
            finite = now.masked_fill(now == -torch.inf, 0.0)
            weights = scores.sub_(finite).exp_()
            fade = (before - finite).exp_()
            total[:, :, asking] = total[:, :, asking] * fade + weights.sum(-1, keepdim=True)
            received = tiling.dropped(weights, number).to(value.dtype) @ value[:, :, tile.key]
            found[:, :, asking] = found[:, :, asking] * fade + received
            top[:, :, asking] = now
        empty = total == 0
        found /= total.masked_fill(empty, 1.0)
        found = found.to(value.dtype)
        normaliser = top.masked_fill_(empty, 0.0) + total.masked_fill_(empty, 1.0).log_()
        ctx.save_for_backward(query, key, value, found, normaliser)
        ctx.tiling = tiling  # type: ignore[attr-defined]
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, slope: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, found, normaliser = ctx.saved_tensors  # type: ignore[attr-defined]
        tiling: Tiling = ctx.tiling  # type: ignore[attr-defined]
        to_query, to_key, to_value = (torch.zeros_like(t, dtype=normaliser.dtype) for t in (query, key, value))
        common = (slope * found).to(normaliser.dtype).sum(-1, keepdim=True)
        for number, tile in enumerate(tiling.tiles):
            asked, keys, values = query[:, :, tile.query], key[:, :, tile.key], value[:, :, tile.key]
            arriving = slope[:, :, tile.query]
            weights = tiling.scores(tile, asked, keys).sub_(normaliser[:, :, tile.query]).exp_()
            used = tiling.dropped(weights, number)
            to_value[:, :, tile.key] += used.mT.to(slope.dtype) @ arriving
            to_scores = tiling.dropped((arriving @ values.mT).to(weights.dtype), number)
            to_scores.sub_(common[:, :, tile.query]).mul_(weights).mul_(tiling.beta)
            to_scores = to_scores.to(query.dtype)
            to_query[:, :, tile.query] += to_scores @ keys
            to_key[:, :, tile.key] += to_scores.mT @ asked
        return to_query.to(query.dtype), to_key.to(key.dtype), to_value.to(value.dtype), None
