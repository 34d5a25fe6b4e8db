"""Softmax attention over a pattern of places, in tiles: forbidden pairs are never computed.

A pattern covers its pairs (query, key) by tiles, each a block of queries with a run of keys, so the cost is that of the
pairs and not of the square. Tiles are worked off one after the other and joined by the sums of their scores (Milakov &
Gimelshein 2018, "Online normalizer calculation for softmax"), and the backward pass computes them again instead of
keeping them (Dao et al. 2022, "FlashAttention"): neither direction holds more scores than one tile has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from weft.blocks.attention.base import Heads, Queries
from weft.blocks.attention.softmax import unrounded, wide

# The parts of torch's fused attention on a CPU: with the sums of the scores, which tiles are joined by. They are no
# promised interface; where they are missing, and on other devices, the plain way computes the same.
FUSED = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu", None)
FUSED_BACK = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu_backward", None)

Places = slice | Tensor  # along the row: a run of them, or some by their numbers


class Forbidden:
    """Which pairs (queries, keys) of a block are not part of a tile; blocks that are alike share one.

    They are given on the processor, where reading them waits for no device, and `meta` has no values.
    """

    def __init__(self, pairs: Bool[Tensor, "Q S"], device: torch.device) -> None:
        self.everything = bool(pairs.all())
        self.empties = bool(pairs.all(1).any())  # whether a query has no key at all
        self.pairs = pairs.to(device)
        self._added: dict[torch.dtype, Tensor] = {}

    def added(self, dtype: torch.dtype) -> Float[Tensor, "Q S"]:
        """0 where a pair is allowed, −∞ where it is not."""
        if dtype not in self._added:
            self._added[dtype] = torch.zeros_like(self.pairs, dtype=dtype).masked_fill_(self.pairs, -torch.inf)
        return self._added[dtype]


@dataclass(frozen=True, eq=False)
class Tile:
    """A block of queries with the keys that some of them see.

    last       the last key's place; −1: keys that are no places of the row, and never padding
    forbidden  which pairs are not part of it; None: all are
    alone      whether no other tile has these queries
    """

    query: Places
    key: Places
    last: int
    forbidden: Forbidden | None = None
    alone: bool = False

    def added(self, like: Tensor) -> Tensor | None:
        """What is added to the scores: −∞ where it is forbidden."""
        return None if self.forbidden is None else self.forbidden.added(like.dtype)


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
        scores = torch.matmul(wide(query) * self.beta, wide(key).mT)
        if tile.forbidden is not None:
            scores.masked_fill_(tile.forbidden.pairs, -torch.inf)
        if self.lengths is not None and tile.last >= self.shortest:
            places = torch.arange(tile.last + 1, device=key.device)[tile.key]
            scores.masked_fill_(places >= self.lengths[:, None, None, None], -torch.inf)
        return scores

    def is_fused(self, tile: Tile, part: TileInputs) -> bool:
        """Whether torch's own kernel can compute it: on a CPU, if every query has a key and nothing is dropped."""
        padded = self.lengths is not None and tile.last >= self.shortest
        empties = tile.forbidden is not None and tile.forbidden.empties
        fits = part.query.device.type == "cpu" and part.key.shape[3] == part.value.shape[3]
        return FUSED is not None and fits and not (self.dropout or padded or empties)

    def dropped(self, weights: Tensor, number: int) -> Tensor:
        """The weights of a tile with some dropped, the same ones in forward and backward."""
        if not self.dropout:
            return weights
        chance = torch.Generator(weights.device).manual_seed((self.seed + number) % 2**63)
        kept = torch.empty_like(weights).bernoulli_(1 - self.dropout, generator=chance)
        return weights * kept.div_(1 - self.dropout)


class TileInputs(NamedTuple):
    """The queries of a tile, and its keys and values."""

    query: Tensor
    key: Tensor
    value: Tensor


class Result(NamedTuple):
    """The final results of a tile's queries: the gradient of the loss, what they received, and their sums."""

    gradient: Tensor
    found: Tensor
    total: Tensor


def attend(query: Queries, key: Tensor, value: Tensor, tiling: Tiling) -> Heads:
    """What each query receives; keys and values have as many heads as queries. A query without a key receives 0."""
    query, key = query.to(value.dtype), key.to(value.dtype)  # autocast may have cast some of them
    return _Attend.apply(query, key, value, tiling)  # type: ignore[no-untyped-call]


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, query: Tensor, key: Tensor, value: Tensor, tiling: Tiling) -> Tensor:
        with unrounded(query.device):
            found, total = _over_tiles(query, key, value, tiling)
        ctx.save_for_backward(query, key, value, found, total)
        ctx.tiling = tiling  # type: ignore[attr-defined]
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, found, total = ctx.saved_tensors  # type: ignore[attr-defined]
        tiling: Tiling = ctx.tiling  # type: ignore[attr-defined]
        gradients = [torch.zeros_like(t, dtype=total.dtype) for t in (query, key, value)]
        with unrounded(query.device):
            for number, tile in enumerate(tiling.tiles):
                part = TileInputs(query[:, :, tile.query], key[:, :, tile.key], value[:, :, tile.key])
                result = Result(*(t[:, :, tile.query] for t in (gradient.to(found.dtype), found, total)))
                fused = tiling.is_fused(tile, part)
                back = (
                    _fused_back(tiling, tile, part, result)
                    if fused
                    else _plain_back(tiling, tile, number, part, result)
                )
                for whole, places, share in zip(gradients, (tile.query, tile.key, tile.key), back, strict=True):
                    whole[:, :, places] += share
        return *(whole.to(t.dtype) for whole, t in zip(gradients, (query, key, value), strict=True)), None


def _over_tiles(query: Tensor, key: Tensor, value: Tensor, tiling: Tiling) -> tuple[Tensor, Tensor]:
    """What each query receives, and the logarithm of the sum of its exp(score)."""
    found = wide(query).new_zeros(*query.shape[:3], value.shape[3])
    total = found.new_full(query.shape[:3], -torch.inf)
    for number, tile in enumerate(tiling.tiles):
        asking = tile.query
        part = TileInputs(query[:, :, asking], key[:, :, tile.key], value[:, :, tile.key])
        fused = tiling.is_fused(tile, part)
        received, weight = _fused(tiling, tile, part) if fused else _plain(tiling, tile, number, part)
        if tile.alone:
            found[:, :, asking], total[:, :, asking] = received.to(found.dtype), weight.to(found.dtype)
            continue
        before = total[:, :, asking]
        now = torch.logaddexp(before, weight.to(found.dtype))
        finite = now.masked_fill(now == -torch.inf, 0.0)
        old, new = ((part - finite).exp()[..., None] for part in (before, weight))
        found[:, :, asking] = found[:, :, asking] * old + received * new
        total[:, :, asking] = now
    # a query without a key: its scores are all −∞, and whatever is taken from them
    return found.to(value.dtype), total.masked_fill_(total == -torch.inf, 0.0)


# -- one tile ---------------------------------------------------------------------------------
# What its queries receive, and the logarithm of their sums; then gradients, from the results and sums of all tiles
# together, so that a tile's are those of the whole. Both ways compute the same.


def _plain(tiling: Tiling, tile: Tile, number: int, part: TileInputs) -> tuple[Tensor, Tensor]:
    scores = tiling.scores(tile, part.query, part.key)
    top = scores.amax(-1, keepdim=True)
    weights = scores.sub_(top.masked_fill_(top == -torch.inf, 0.0)).exp_()
    total = weights.sum(-1, keepdim=True)
    received = tiling.dropped(weights, number).to(part.value.dtype) @ part.value
    return received / total.masked_fill(total == 0, 1.0), (top + total.log()).squeeze(-1)


def _plain_back(
    tiling: Tiling, tile: Tile, number: int, part: TileInputs, result: Result
) -> tuple[Tensor, Tensor, Tensor]:
    gradient = result.gradient
    weights = tiling.scores(tile, part.query, part.key).sub_(result.total[..., None]).exp_()
    to_value = tiling.dropped(weights, number).mT.to(gradient.dtype) @ gradient
    to_scores = tiling.dropped((gradient @ part.value.mT).to(weights.dtype), number)
    to_scores.sub_((gradient * result.found).sum(-1, keepdim=True)).mul_(weights).mul_(tiling.beta)
    to_scores = to_scores.to(part.query.dtype)
    return to_scores @ part.key, to_scores.mT @ part.query, to_value


def _fused(tiling: Tiling, tile: Tile, part: TileInputs) -> tuple[Tensor, Tensor]:
    assert FUSED is not None
    found, total = FUSED(*part, 0.0, False, attn_mask=tile.added(part.query), scale=tiling.beta)
    return found, total


def _fused_back(tiling: Tiling, tile: Tile, part: TileInputs, result: Result) -> tuple[Tensor, Tensor, Tensor]:
    assert FUSED_BACK is not None
    gradient, found, total = result
    added = tile.added(part.query)
    back = FUSED_BACK(gradient, *part, found, total, 0.0, False, attn_mask=added, scale=tiling.beta)
    return back[0], back[1], back[2]
