"""Capabilities: what a model can do, as small protocols. Tasks ask for a capability, never for a family.

if CausalLM in config.provides: ...                 # settings, before anything is built
if isinstance(model, CausalLM): ...                 # a model has what its config promises
families_for(CausalLM)                              # the families that can be trained for it
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from weft.blocks import Cache

Ids = NDArray[np.integer[Any]]


@runtime_checkable
class CausalLM(Protocol):
    """A causal language model, which continues a text: a cache of what was read, and the logits of the next token."""

    @property
    def context(self) -> int | None:
        """How many tokens it can see at once; None: any number."""
        ...

    def new_caches(self, capacity: int | None = None) -> Sequence[Cache]: ...

    def next_logits(self, tokens: Tensor, *, keep: Tensor | None = None, caches: Any) -> Tensor:
        """(B, V): the logits of each row's next token after tokens (B, T), of which `keep` marks the real ones."""
        ...


@runtime_checkable
class CarriesState(Protocol):
    """Has a recurrent state of fixed size, which training carries from one segment of a text to the next."""

    def __call__(self, tokens: Tensor, *, caches: Sequence[Cache]) -> Tensor: ...

    def new_states(self) -> list[Any]:
        """Empty `StateCache`s, one for each layer."""
        ...


@runtime_checkable
class LearnsByCounting(Protocol):
    """Is trained by counting a text instead of in steps."""

    def count(self, tokens: Ids, validation: Ids, told: Callable[[int], None]) -> dict[str, Any]:
        """Count the tokens, choose the open numbers by the validation tokens, and return what was found."""
        ...


@runtime_checkable
class EncodesText(Protocol):
    """Gives a state for each token of a text."""

    @property
    def context(self) -> int | None: ...

    def hidden(self, tokens: Tensor) -> Tensor: ...

    def text_states(self, texts: Sequence[Ids]) -> list[Tensor]:
        """(its length, D) for each text."""
        ...


@runtime_checkable
class ClassifiesText(Protocol):
    """Classifies whole texts."""

    def text_logits(self, row: Any) -> Tensor:
        """(N, classes): a logit for each class of each text in a `PackedTexts`, or the one number of a regression."""
        ...


@runtime_checkable
class FillsMasks(Protocol):
    """Predicts masked tokens from bidirectional states."""

    def masked_logits(self, hidden: Tensor) -> Tensor: ...


@runtime_checkable
class Seq2SeqLM(Protocol):
    """Writes one text from another."""

    def encode(self, source: Tensor, keep: Tensor | None = None) -> Any: ...

    def new_caches(self, capacity: int | None = None) -> Sequence[Cache]: ...

    def states(self, target: Tensor, memory: Any, *, keep: Tensor | None = None, caches: Any = None) -> Tensor: ...

    def logits(self, states: Tensor) -> Tensor: ...


@runtime_checkable
class FillsSpans(Seq2SeqLM, Protocol):
    """Writes the missing spans of a text, each marked by a sentinel (Raffel et al. 2020)."""


@runtime_checkable
class EncodesImages(Protocol):
    """Pixels in, a state for each place out, and one vector for the image."""

    def hidden(self, pixels: Tensor) -> Tensor: ...

    def pooled(self, states: Tensor) -> Tensor: ...


@runtime_checkable
class ClassifiesImages(EncodesImages, Protocol):
    """Classifies images."""

    def class_logits(self, states: Tensor) -> Tensor: ...


@runtime_checkable
class WordVectorTable(Protocol):
    """Has a vector for each word."""

    @property
    def word_vectors(self) -> Tensor:
        """(V, D): the input embeddings of the words."""
        ...


@runtime_checkable
class TokenVectorTable(Protocol):
    """Begins with a vector for each token, which may come from word vectors."""

    @property
    def token_vectors(self) -> Tensor:
        """(V, D): the embeddings at the input."""
        ...


@runtime_checkable
class TagsTokens(Protocol):
    """Labels each token from bidirectional states."""

    def token_logits(self, hidden: Tensor) -> Tensor: ...


Capability = type[Any]
DOES: dict[Capability, str] = {  # in words; the first of these that a model has is its main one
    WordVectorTable: "has a vector for each word, and reads no text",
    Seq2SeqLM: "writes one text from another",
    FillsSpans: "writes what is missing in a text",
    ClassifiesImages: "looks at images",
    EncodesImages: "looks at images",
    ClassifiesText: "reads text and does not write",
    TagsTokens: "reads text and does not write",
    CausalLM: "continues a text",
    FillsMasks: "reads text and does not write",
    EncodesText: "reads text and does not write",
}
