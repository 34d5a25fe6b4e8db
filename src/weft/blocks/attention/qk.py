"""What can happen to queries and keys between their maps and the lookup, as one module."""

from __future__ import annotations

from jaxtyping import Int
from torch import Tensor, nn

from weft.blocks.attention.base import Keys, Queries
from weft.blocks.norm import RMSNorm


class QKNorm(nn.Module):
    """Queries and keys of every head scaled to root mean square 1 (Henry et al. 2020; Qwen3's form)."""

    def __init__(self, head_width: int, *, eps: float = 1e-6) -> None:
        super().__init__()
        self.query_norm = RMSNorm(head_width, eps=eps)
        self.key_norm = RMSNorm(head_width, eps=eps)

    def forward(self, query: Queries, key: Keys, positions: Int[Tensor, "..."] | None) -> tuple[Queries, Keys]:
        return self.query_norm(query), self.key_norm(key)


class Chain(nn.ModuleList):
    """Several such modules one after the other: `Chain([QKNorm(64), Rotary(64)])`."""

    def forward(self, query: Queries, key: Keys, positions: Int[Tensor, "..."] | None) -> tuple[Queries, Keys]:
        for module in self:
            query, key = module(query, key, positions)
        return query, key
