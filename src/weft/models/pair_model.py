"""The interface of sequence-to-sequence models: for training, for beam search, and for looking inside.

memory = model.encode(source)                       # once
logits = model.logits(model.states(target, memory)) # for all positions at once, or with caches step by step
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from weft.blocks import Cache, DecoderCache
from weft.config import Size
from weft.errors import ShapeError
from weft.models.base import LayerStack, Maker, Model, ModelConfig, stack_of
from weft.models.capabilities import Capability, Seq2SeqLM
from weft.models.example_step import example_cross_entropy

LABEL_SMOOTHING = 0.1  # in an example step, as in training of translators


class PairModelConfig(ModelConfig):
    """A family that writes one text from another: its model is a `PairModel`. It has a `max_length`, and a `start`,
    the token that a target begins with."""

    vocab_size: Size

    @property
    def provides(self) -> frozenset[Capability]:
        return frozenset({Seq2SeqLM})


def pair_rates(matrices: float, embeddings: float, head: float) -> dict[str, Any]:
    """Learning rates of a model with one table for reading and writing."""
    names = ("learning_rate", "embedding_rate", "head_rate")
    return {f"optimizer.{name}": rate for name, rate in zip(names, (matrices, embeddings, head), strict=True)}


class Remembered(Protocol):
    """The encoded sources; only the model that made them knows what they hold."""

    def select(self, rows: Int[Tensor, "R"]) -> Self:
        """These sources, in this order."""
        ...


MemoryT = TypeVar("MemoryT", bound=Remembered)


class PairModel(Model, Generic[MemoryT]):
    """Tokens of a source and of a target in, logits over the target's next token out, at every position. It has an
    `encoder` and a `decoder`, each with `layers`."""

    marks_gaps: ClassVar[bool] = False  # gaps of a source are sentinels, and what stands in them is written

    def forward(
        self,
        source: Int[Tensor, "B S"],
        target: Int[Tensor, "B T"],
        *,
        source_keep: Bool[Tensor, "B S"] | None = None,
        keep: Bool[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B T V"]:
        """Logits over what follows each token of the target, which begins with the start token."""
        return self.logits(self.states(target, self.encode(source, source_keep), keep=keep))

    def layers_in_order(self) -> list[LayerStack]:
        return [stack_of(f"{name}.layers", getattr(self, name).layers, name) for name in ("encoder", "decoder")]

    def example_inputs(self, batch: int, length: int, make: Maker) -> tuple[Tensor, Tensor]:
        config = self.config
        source = make((batch, length), getattr(config, "source_vocab_size", None) or config.vocab_size)
        return source, make((batch, length), config.vocab_size)

    def example_loss(self, batch: int, length: int, make: Maker) -> Tensor:
        return example_cross_entropy(self(*self.example_inputs(batch, length, make)), make, LABEL_SMOOTHING)

    @property
    def looks(self) -> str | None:
        """The name pattern of the attentions that attend to the source while a text is written, the first layer's
        first; None: there are none."""
        return None

    @abstractmethod
    def encode(self, source: Int[Tensor, "B S"], keep: Bool[Tensor, "B S"] | None = None) -> MemoryT:
        """Read the source, all of it at once. `keep` marks padding."""

    @abstractmethod
    def new_caches(self, capacity: int | None = None) -> list[Cache]:
        """Empty caches, one for each layer of the decoder, for the caller to keep."""

    @abstractmethod
    def states(
        self,
        target: Int[Tensor, "B T"],
        memory: MemoryT,
        *,
        keep: Bool[Tensor, "B T"] | None = None,
        caches: Sequence[Cache] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """The state at each token of the target, from which the head reads the next.

        Padding behind a target needs no `keep`: nothing real looks ahead. With caches that hold something,
        neighbouring rows may share a source of the memory, as the beams of a search do.
        """

    @abstractmethod
    def logits(self, states: Float[Tensor, "*lead D"]) -> Float[Tensor, "*lead V"]:
        """Logits over the vocabulary for any states: all of them, or those of real tokens alone."""


def select_rows(caches: Sequence[Cache], rows: Int[Tensor, "R"]) -> None:
    """Keep these rows of what is written; the memory that several of them share stays as it is."""
    for cache in caches:
        (cache.own if isinstance(cache, DecoderCache) else cache).select(rows)


def select_sources(caches: Sequence[Cache], sources: Int[Tensor, "M"]) -> None:
    """Keep these sources of the memory; rows of what is written are chosen by `select_rows`."""
    for cache in caches:
        if isinstance(cache, DecoderCache):
            cache.memory.select(sources)


def check_tokens(name: str, tokens: Tensor) -> None:
    """Refuse what is no batch of texts."""
    if tokens.dim() != 2:
        raise ShapeError(f"{name} has shape {tuple(tokens.shape)}", expected="(B, T)")


def padded(
    texts: Sequence[Sequence[int] | NDArray[np.integer]], filler: int = 0
) -> tuple[Int[Tensor, "B T"], Bool[Tensor, "B T"] | None]:
    """Texts as rows, padded at the end; and which tokens are real, or None if all are."""
    lengths = torch.tensor([len(text) for text in texts])
    longest = int(lengths.max())
    rows = torch.full((len(texts), longest), filler, dtype=torch.long)
    for row, text in zip(rows, texts, strict=True):
        row[: len(text)] = torch.as_tensor(text, dtype=torch.long)
    if int(lengths.min()) == longest:
        return rows, None
    return rows, torch.arange(longest) < lengths[:, None]
