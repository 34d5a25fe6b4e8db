"""Texts of different lengths one after the other in one row: no slot is padding, so none costs anything.

    row = PackedSequences.of(texts)                       # texts of 5, 5 and 2 tokens
    model.hidden(row.joined(texts), packed=row)  # (1, 12, D) instead of (3, 5, D)

Modules that work on each position alone are unaffected. Attention splits the row into its texts, and batches
neighbours of equal length: sort the texts by length, and there are few batches.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from weft.errors import ShapeError


@dataclass(frozen=True)
class PackedSequences:
    """The lengths of the texts in a row, in their order; each text sees itself alone."""

    lengths: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.lengths or min(self.lengths) < 1:
            raise ShapeError(f"texts of {self.lengths or 'no'} tokens", expected="at least one text, and none empty")

    def __repr__(self) -> str:
        return f"PackedSequences({len(self.lengths)} texts, {self.total} tokens)"

    @classmethod
    def of(cls, texts: Sequence[Sequence[int] | NDArray[np.integer] | Tensor]) -> PackedSequences:
        """The packed row of these texts."""
        return cls(tuple(len(text) for text in texts))

    @staticmethod
    def joined(
        texts: Sequence[Sequence[int] | NDArray[np.integer] | Tensor], device: torch.device | None = None
    ) -> Int[Tensor, "1 T"]:
        """The tokens of these texts in one row."""
        return torch.cat([torch.as_tensor(text, dtype=torch.long) for text in texts]).to(device)[None]

    @functools.cached_property
    def total(self) -> int:
        """Tokens in the row."""
        return sum(self.lengths)

    @functools.cached_property
    def longest(self) -> int:
        """Tokens in the longest text."""
        return max(self.lengths)

    def positions(self, device: torch.device) -> Int[Tensor, "T"]:
        """The position of each token in its own text."""
        return torch.cat([torch.arange(n, device=device) for n in self.lengths])

    def starts(self, device: torch.device) -> Int[Tensor, "N"]:
        """The slot of each text's first token."""
        return torch.tensor([0, *itertools.accumulate(self.lengths[:-1])], device=device)

    def runs(self) -> Iterator[tuple[int, int, int]]:
        """Neighbours of equal length: their first slot, how many they are, and their length."""
        start = 0
        for length, group in itertools.groupby(self.lengths):
            count = len(list(group))
            yield start, count, length
            start += count * length

    def means(self, row: Float[Tensor, "1 T D"]) -> Float[Tensor, "N D"]:
        """The mean over the tokens of each text."""
        lengths = torch.tensor(self.lengths, device=row.device)
        return torch.segment_reduce(row[0], "mean", lengths=lengths, axis=0)

    def split(self, row: Float[Tensor, "1 T D"]) -> list[Tensor]:
        """The part of the row that belongs to each text, (its length, D)."""
        return list(torch.split(row[0], list(self.lengths)))


def length_buckets(lengths: Sequence[int], tokens: int) -> list[list[int]]:
    """Indices of texts, shortest first, in buckets of at most so many tokens; a longer text goes alone."""
    found: list[list[int]] = []
    filled = 0
    for number in sorted(range(len(lengths)), key=lengths.__getitem__):
        if not found or filled + lengths[number] > tokens:
            found.append([])
            filled = 0
        found[-1].append(number)
        filled += lengths[number]
    return found
