"""Positions of tokens, and the three places of a model where they enter."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from weft.blocks.cache import Cache, all_positions
from weft.blocks.roles import POSITIONS
from weft.config import Choice


class Position(nn.Module):
    """A kind of position overrides the one place where it acts; the others do nothing.

    at_input   the token vectors (sinusoidal, learned)
    qk         a module for queries and keys inside attention (rotary)
    at_scores  a bias on the scores, for `Mask.bias` (T5's relative bias, ALiBi)
    """

    role = POSITIONS

    def at_input(self, x: Float[Tensor, "B T D"], positions: Int[Tensor, "*rows T"]) -> Float[Tensor, "B T D"]:
        return x

    @property
    def qk(self) -> nn.Module | None:
        return None

    def at_scores(
        self, asking: Int[Tensor, "*rows T"], answering: Int[Tensor, "*rows S"]
    ) -> Float[Tensor, "R H T S"] | None:
        return None

    def bias(
        self,
        count: int,
        device: torch.device,
        *,
        keep: Bool[Tensor, "B T"] | None = None,
        cache: Cache | None = None,
    ) -> Float[Tensor, "R H T S"] | None:
        """`at_scores` for the next tokens and all that are remembered; positions of cached tokens are read only if a
        bias needs them."""
        if type(self).at_scores is Position.at_scores:
            return None
        return self.at_scores(*all_positions(count, device, keep=keep, cache=cache))


class PositionConfig(Choice):
    """Which position kind: `PositionConfig.registry` lists them."""

    def build(self, *, width: int, heads: int, head_width: int, max_length: int) -> Position:
        """The module for a stream of this width, in heads of this width, for texts up to this length."""
        return Position()


class NoPositionConfig(PositionConfig, kind="none"):
    """No positions: without a causal mask, the model sees a bag of tokens."""


def distances(asking: Int[Tensor, "*rows T"], answering: Int[Tensor, "*rows S"]) -> Int[Tensor, "R T S"]:
    """How far each answering position lies ahead of (+) or behind (−) each asking one."""
    ahead = answering[..., None, :] - asking[..., :, None]
    return ahead if ahead.dim() == 3 else ahead[None]
