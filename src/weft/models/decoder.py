"""Base classes of causal language models: logits at every position or after the last, and a decoder-only Transformer.
A relative of GPT defines its layers (`layer`) and how its weights are initialised."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from weft.blocks import Cache, Layers, Mask, positions
from weft.blocks.roles import HEAD, TOKENS, by_name
from weft.errors import ShapeError
from weft.models.base import LayerStack, Maker, Model, stack_of
from weft.models.capabilities import Ids
from weft.models.example_step import example_cross_entropy


def last_real(keep: Bool[Tensor, "B T"]) -> Int[Tensor, "B"]:
    """The position of the last real token in each row."""
    return keep.shape[1] - 1 - keep.flip(1).int().argmax(1)


class CausalDecoder(Model):
    """Tokens in, logits over the next token out, at every position. A family gives `hidden`, `new_caches` and, if its
    head is not `head`, `logits`."""

    head: nn.Module | None

    @property
    def context(self) -> int | None:
        """How many tokens it can see at once; None: any number."""
        found: int | None = self.config.context
        return found

    @abstractmethod
    def new_caches(self, capacity: int | None = None) -> list[Cache]:
        """Empty caches, one for each layer, for the caller to keep."""

    @abstractmethod
    def hidden(
        self,
        tokens: Int[Tensor, "B T"],
        *,
        keep: Bool[Tensor, "B T"] | None = None,
        caches: Sequence[Cache] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """The states from which the head reads the next token."""

    def logits(self, hidden: Float[Tensor, "*lead D"]) -> Float[Tensor, "*lead V"]:
        """Logits of the head for any states."""
        assert self.head is not None
        found: Tensor = self.head(hidden)
        return found

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        *,
        keep: Bool[Tensor, "B T"] | None = None,
        caches: Sequence[Cache] | None = None,
    ) -> Float[Tensor, "B T V"]:
        """Logits over the next token. `keep` marks padding in these tokens, `caches` hold earlier tokens."""
        return self.logits(self.hidden(tokens, keep=keep, caches=caches))

    def next_logits(
        self, tokens: Int[Tensor, "B T"], *, keep: Bool[Tensor, "B T"] | None = None, caches: Sequence[Cache]
    ) -> Float[Tensor, "B V"]:
        """Logits after the last real token of each row alone; a prompt's other positions need none."""
        hidden = self.hidden(tokens, keep=keep, caches=caches)
        if keep is None:
            return self.logits(hidden[:, -1])
        return self.logits(hidden[torch.arange(len(hidden), device=hidden.device), last_real(keep)])

    def example_inputs(self, batch: int, length: int, make: Maker) -> tuple[Tensor, ...]:
        return (make((batch, length), self.config.vocab_size),)

    def example_loss(self, batch: int, length: int, make: Maker) -> Tensor:
        return example_cross_entropy(self(*self.example_inputs(batch, length, make)), make)

    def text_states(self, texts: Sequence[Ids]) -> list[Tensor]:
        """(its length, D) for each text; they are read as a padded batch."""
        longest, device = max(map(len, texts)), next(self.parameters()).device
        tokens = torch.zeros(len(texts), longest, dtype=torch.long)
        keep = torch.zeros(len(texts), longest, dtype=torch.bool)
        for place, text in enumerate(texts):
            tokens[place, : len(text)] = torch.as_tensor(text, dtype=torch.long)
            keep[place, : len(text)] = True
        states = self.hidden(tokens.to(device), keep=None if bool(keep.all()) else keep.to(device))
        return [rows[: len(text)] for rows, text in zip(states, texts, strict=True)]


class DecoderTransformer(CausalDecoder):
    """Token vectors, causal layers, a last norm and a head; `config` has the fields of a `GPTConfig`, or as
    many of them as the family has: without `embedding_norm` token vectors are not normed, without `tied` the head is a
    map of its own."""

    roles = by_name(tokens=TOKENS, head=HEAD)

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config
        width = config.width
        heads, self.head_width = config.attention.sizes(width)
        self.tokens = nn.Embedding(config.vocab_size, width)
        self.position = config.position.build(
            width=width, heads=heads, head_width=self.head_width, max_length=config.max_length
        )
        normed = getattr(config, "embedding_norm", False)
        self.embedding_norm = config.norm.build(width) if normed else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)
        self.layers = Layers(self.layer(number) for number in range(config.depth))
        self.norm = config.norm.build(width)
        self.head = nn.Linear(width, config.vocab_size, bias=False)
        if getattr(config, "tied", False):
            self.head.weight = self.tokens.weight

    @abstractmethod
    def layer(self, number: int) -> nn.Module:
        """The layer with this number, counted from 0; `self.position.qk` places its queries and keys."""

    @property
    def token_vectors(self) -> Float[Tensor, "V D"]:
        """The table of token vectors."""
        return self.tokens.weight

    def layers_in_order(self) -> list[LayerStack]:
        return [stack_of("layers", self.layers)]

    def new_caches(self, capacity: int | None = None) -> list[Cache]:
        return self.layers.new_caches(capacity)

    def hidden(
        self,
        tokens: Int[Tensor, "B T"],
        *,
        keep: Bool[Tensor, "B T"] | None = None,
        caches: Sequence[Cache] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """The output of the last norm, from which the head predicts the next token."""
        if tokens.dim() != 2:
            raise ShapeError(f"tokens have shape {tuple(tokens.shape)}", expected="(B, T)")
        first = caches[0] if caches else None
        count, device = tokens.shape[1], tokens.device
        x = self.position.at_input(self.tokens(tokens), positions(count, device, keep=keep, cache=first))
        x = self.dropout(self.embedding_norm(x))
        mask = Mask(causal=True, keep=keep, bias=self.position.bias(count, device, keep=keep, cache=first))
        x = self.layers(x, mask=mask, caches=caches)
        states: Tensor = self.norm(x)
        return states
