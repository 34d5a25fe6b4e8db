"""Many texts through an encoder without work on padding: bunches of similar length, each as one unpadded row.

    encode(model, [[101, 7592, 102], [101, 102]])          # their states, (3, D) and (2, D)
    encode_first(model, texts)                             # (N, D): the first token of each

Gradients flow if the caller lets them; for use alone wrap it in `torch.inference_mode()`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from weft.blocks import Unpadded, bunches
from weft.errors import DataError

BUNCH = 1024  # tokens in a row: enough for products to run at full speed, and few enough to stay in the cache
Tokens = Sequence[int] | NDArray[np.integer] | Tensor


@dataclass(frozen=True, eq=False)
class TextRow:
    """Texts one after the other, as a model reads them; `segments` None: each is one text, no pair."""

    tokens: Tensor
    segments: Tensor | None
    unpadded: Unpadded

    @classmethod
    def of(cls, texts: Sequence[Tokens], segments: Sequence[Tokens] | None = None) -> TextRow:
        """The row that these texts make."""
        unpadded = Unpadded.of(texts)
        return cls(unpadded.joined(texts), None if segments is None else unpadded.joined(segments), unpadded)

    def __repr__(self) -> str:
        return f"TextRow({self.unpadded})"

    def to(self, device: torch.device | str) -> TextRow:
        """The same on another device."""
        told = None if self.segments is None else self.segments.to(device)
        return TextRow(self.tokens.to(device), told, self.unpadded)

    def states(self, model: nn.Module) -> Tensor:
        """(1, total, D): the state of each token."""
        states: Tensor = model(self.tokens, self.segments, unpadded=self.unpadded)
        return states


@runtime_checkable
class TextClassifier(Protocol):
    """A model that says of whole texts what they are."""

    def text_logits(self, row: TextRow) -> Tensor:
        """(N, classes): a logit for each class of each text in the row, or the one number of a regression."""
        ...


@dataclass(frozen=True, eq=False)
class Bunch:
    """What the encoder gave for some of the texts.

    numbers   which texts, in the order of the row
    hidden    (1, total, D)
    """

    numbers: list[int]
    unpadded: Unpadded
    hidden: Tensor

    def __repr__(self) -> str:
        return f"Bunch({self.unpadded})"

    def texts(self) -> list[Tensor]:
        """The states of each text, (its length, D)."""
        return self.unpadded.split(self.hidden)

    def first(self) -> Tensor:
        """(N, D): the state of each text's first token."""
        return self.hidden[0, self.unpadded.starts(self.hidden.device)]


def encode_bunches(
    model: nn.Module, texts: Sequence[Tokens], segments: Sequence[Tokens] | None = None, *, tokens: int = BUNCH
) -> Iterator[Bunch]:
    """The texts in bunches of about so many tokens, shortest first, for results that are read as they come."""
    if segments is not None and [len(s) for s in segments] != [len(t) for t in texts]:
        raise DataError("segments of other lengths than the texts", expected="one for each token")
    device = next(model.parameters()).device
    for numbers in bunches([len(text) for text in texts], tokens):
        told = None if segments is None else [segments[n] for n in numbers]
        row = TextRow.of([texts[n] for n in numbers], told).to(device)
        yield Bunch(numbers, row.unpadded, row.states(model))


def encode(
    model: nn.Module, texts: Sequence[Tokens], segments: Sequence[Tokens] | None = None, *, tokens: int = BUNCH
) -> list[Tensor]:
    """The states of every text, (its length, D), in the order given."""
    found = [
        pair
        for bunch in encode_bunches(model, texts, segments, tokens=tokens)
        for pair in zip(bunch.numbers, bunch.texts(), strict=True)
    ]
    return [states for _, states in sorted(found, key=lambda pair: pair[0])]


def encode_first(
    model: nn.Module, texts: Sequence[Tokens], segments: Sequence[Tokens] | None = None, *, tokens: int = BUNCH
) -> Tensor:
    """(N, D): the state of each text's first token, in the order given.

    Heads that pool by the first read it as a row of one token:
    `model.class_logits(encode_first(model, texts)[:, None])`.
    """
    parts = [(bunch.numbers, bunch.first()) for bunch in encode_bunches(model, texts, segments, tokens=tokens)]
    if not parts:
        raise DataError("no texts", expected="at least one")
    order = torch.tensor([n for numbers, _ in parts for n in numbers]).argsort()
    first = torch.cat([first for _, first in parts])
    return first[order.to(first.device)]
