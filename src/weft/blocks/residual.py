"""Residuals: how a branch joins the stream. The position of the norm is a class, not a flag."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from weft.blocks.attention.base import Stream

Branch = Callable[[Tensor], Tensor]


class Residual(nn.Module):
    """A norm and a dropout around any branch; the subclass sets their order."""

    def __init__(self, norm: nn.Module, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm = norm
        self.dropout = nn.Dropout(dropout)


class PreNorm(Residual):
    """x + branch(norm(x)): the stream itself is never normalised (GPT-2, ViT, T5)."""

    def forward(self, x: Stream, branch: Branch) -> Stream:
        return x + self.branch(x, branch)

    def branch(self, x: Stream, branch: Branch) -> Stream:
        """What a branch adds to the stream."""
        added: Stream = self.dropout(branch(self.norm(x)))
        return added


class PostNorm(Residual):
    """norm(x + branch(x)): the stream is normalised after every branch (the 2017 Transformer, BERT)."""

    def forward(self, x: Stream, branch: Branch) -> Stream:
        return self.norm(x + self.dropout(branch(x)))
