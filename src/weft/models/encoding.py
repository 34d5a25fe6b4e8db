"""Many texts through an encoder without work on padding: buckets of similar length, each as one packed row.

    encode(model, [[101, 7592, 102], [101, 102]])          # their states, (3, D) and (2, D)
    encode_first(model, texts)                             # (N, D): the first token of each

Gradients flow if the caller lets them; for use alone wrap it in `torch.inference_mode()`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from weft.blocks import PackedSequences, length_buckets
from weft.errors import DataError

TOKENS_PER_BUCKET = 1024  # enough for matrix products at full speed, few enough to stay in the processor's cache
Tokens = Sequence[int] | NDArray[np.integer] | Tensor


@dataclass(frozen=True, eq=False)
class PackedTexts:
    """Packed texts, one after the other in one row; `segments` None: each is one text, no pair."""

    tokens: Tensor
    segments: Tensor | None
    packed: PackedSequences

    @classmethod
    def of(cls, texts: Sequence[Tokens], segments: Sequence[Tokens] | None = None) -> PackedTexts:
        """These texts packed into one row."""
        packed = PackedSequences.of(texts)
        return cls(packed.joined(texts), None if segments is None else packed.joined(segments), packed)

    def __repr__(self) -> str:
        return f"PackedTexts({self.packed})"

    def to(self, device: torch.device | str) -> PackedTexts:
        """The same on another device."""
        told = None if self.segments is None else self.segments.to(device)
        return PackedTexts(self.tokens.to(device), told, self.packed)

    def states(self, model: nn.Module) -> Tensor:
        """(1, total, D): the state of each token."""
        states: Tensor = model.hidden(self.tokens, self.segments, packed=self.packed)  # type: ignore[operator]
        return states


@dataclass(frozen=True, eq=False)
class LengthBucket:
    """The encoder's states of one bucket of texts.

    numbers   the indices of the texts, in the order of the row
    hidden    (1, total, D)
    """

    numbers: list[int]
    packed: PackedSequences
    hidden: Tensor

    def __repr__(self) -> str:
        return f"LengthBucket({self.packed})"

    def texts(self) -> list[Tensor]:
        """The states of each text, (its length, D)."""
        return self.packed.split(self.hidden)

    def first(self) -> Tensor:
        """(N, D): the state of each text's first token."""
        return self.hidden[0, self.packed.starts(self.hidden.device)]


def encode_buckets(
    model: nn.Module,
    texts: Sequence[Tokens],
    segments: Sequence[Tokens] | None = None,
    *,
    tokens: int = TOKENS_PER_BUCKET,
) -> Iterator[LengthBucket]:
    """Encode the texts in buckets of about `tokens` tokens, shortest first, and yield each as it is done."""
    if segments is not None and [len(s) for s in segments] != [len(t) for t in texts]:
        raise DataError("segments of other lengths than the texts", expected="one for each token")
    device = next(model.parameters()).device
    for numbers in length_buckets([len(text) for text in texts], tokens):
        told = None if segments is None else [segments[n] for n in numbers]
        row = PackedTexts.of([texts[n] for n in numbers], told).to(device)
        yield LengthBucket(numbers, row.packed, row.states(model))


def encode(
    model: nn.Module,
    texts: Sequence[Tokens],
    segments: Sequence[Tokens] | None = None,
    *,
    tokens: int = TOKENS_PER_BUCKET,
) -> list[Tensor]:
    """The states of every text, (its length, D), in the order given."""
    found = [
        pair
        for bucket in encode_buckets(model, texts, segments, tokens=tokens)
        for pair in zip(bucket.numbers, bucket.texts(), strict=True)
    ]
    return [states for _, states in sorted(found, key=lambda pair: pair[0])]


def encode_first(
    model: nn.Module,
    texts: Sequence[Tokens],
    segments: Sequence[Tokens] | None = None,
    *,
    tokens: int = TOKENS_PER_BUCKET,
) -> Tensor:
    """(N, D): the state of each text's first token, in the order given.

    Heads that pool by the first read it as a row of one token:
    `model.class_logits(encode_first(model, texts)[:, None])`.
    """
    parts = [(bucket.numbers, bucket.first()) for bucket in encode_buckets(model, texts, segments, tokens=tokens)]
    if not parts:
        raise DataError("no texts", expected="at least one")
    order = torch.tensor([n for numbers, _ in parts for n in numbers]).argsort()
    first = torch.cat([first for _, first in parts])
    return first[order.to(first.device)]
