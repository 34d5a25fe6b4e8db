"""What can happen to queries and keys between their maps and the core, as one module."""

from __future__ import annotations

from jaxtyping import Int
from torch import Tensor, nn

from weft.blocks.attention.base import Keys, Queries
from weft.blocks.norm import RMSNorm
from weft.errors import ShapeError


class QKNorm(nn.Module):
    """Queries and keys of every head scaled to root mean square 1 (Henry et al. 2020).

    `learned`: with a weight per feature (Qwen3) or without.
    """

    def __init__(self, head_width: int, *, eps: float = 1e-6, learned: bool = True) -> None:
        super().__init__()
        self.query_norm = RMSNorm(head_width, eps=eps, learned=learned)
        self.key_norm = RMSNorm(head_width, eps=eps, learned=learned)

    def forward(self, query: Queries, key: Keys, positions: Int[Tensor, "..."] | None) -> tuple[Queries, Keys]:
        if query.shape[-1] != self.query_norm.width:
            raise ShapeError(f"queries of width {query.shape[-1]}", expected=f"the head width {self.query_norm.width}")
        return self.query_norm(query), self.key_norm(key)


def chain(*parts: nn.Module | None) -> nn.Module | None:
    """Those parts that are there as one module; None if there are none."""
    there = [part for part in parts if part is not None]
    return Chain(there) if len(there) > 1 else there[0] if there else None


class Chain(nn.ModuleList):
    """Several such modules one after the other: `Chain([QKNorm(64), Rotary(64)])`."""

    def forward(self, query: Queries, key: Keys, positions: Int[Tensor, "..."] | None) -> tuple[Queries, Keys]:
        for module in self:
            query, key = module(query, key, positions)
        return query, key
