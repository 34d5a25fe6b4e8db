"""What the Transformer and T5 share: an encoder, and a decoder with cross-attention to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from weft.blocks import Cache, Layers, Mask, Position, positions
from weft.blocks.roles import HEAD, TOKENS, by_name
from weft.models.pair_model import PairModel, check_tokens, pair_rates
from weft.models.sites import ACROSS, DECODER, ENCODER, AttentionSite, Place, ReachStack, chosen_part, seeing, sites_in
from weft.models.sizing import SizePreset, Sizing

MemoryFrom = Literal["last", "same", "joint"]
SIZES = ((128, 2, 4, 0.1), (192, 3, 6, 0.15), (256, 4, 8, 0.15), (384, 4, 12, 0.15), (512, 6, 8, 0.15))


PAIR_SIZING = Sizing(
    [SizePreset(dict(zip(("width", "depth", "attention.heads", "dropout"), size, strict=True))) for size in SIZES],
    training=pair_rates(0.01, 0.005, 0.005),
)


@dataclass(frozen=True, eq=False)
class Memory:
    """The encoder's output: (B, S, D) for all layers of the decoder, or one for each; `keep` marks padding in it."""

    states: Tensor | list[Tensor]
    keep: Tensor | None = None

    def __repr__(self) -> str:
        first = self.states if isinstance(self.states, Tensor) else self.states[0]
        return f"Memory({first.shape[0]} texts of up to {first.shape[1]} tokens)"

    def select(self, rows: Int[Tensor, "R"]) -> Memory:
        """These rows, in this order."""
        states = self.states[rows] if isinstance(self.states, Tensor) else [state[rows] for state in self.states]
        return replace(self, states=states, keep=None if self.keep is None else self.keep[rows])


class Stack(nn.Module):
    """Layers, with positions before the first and a norm after the last, and dropout of what it gives (T5)."""

    def __init__(self, *, position: Position, layers: Layers, norm: nn.Module, dropout: float = 0.0) -> None:
        super().__init__()
        self.position, self.layers, self.norm = position, layers, norm
        self.dropout = nn.Dropout(dropout)

    def finished(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """A layer's output after the norm and dropout of the stack."""
        return self.dropout(self.norm(x))


class EncoderDecoder(PairModel[Memory]):
    """Tokens of a source and of a target in, logits over the target's next token out, at every position.

    tokens         the table of token vectors, which is the head's too if they are tied; `source_tokens` where the
                   source has a vocabulary of its own
    embedding      what happens to token vectors before positions are added (a scale, a norm)
    head           states → logits; `head_scale` shrinks the states first
    memory_from    what the decoder's layers attend to: the encoder's "last" states, those of the "same" layer, or the
                   last ones in one table together with what is already written ("joint")
    """

    roles = by_name(tokens=TOKENS, source_tokens=TOKENS, head=HEAD)

    def __init__(
        self,
        *,
        tokens: nn.Embedding,
        source_tokens: nn.Embedding | None,
        embedding: nn.Module,
        encoder: Stack,
        decoder: Stack,
        head: nn.Linear,
        dropout: float,
        memory_from: MemoryFrom = "last",
        head_scale: float = 1.0,
    ) -> None:
        super().__init__()
        self.tokens, self.source_tokens, self.embedding = tokens, source_tokens, embedding
        self.dropout = nn.Dropout(dropout)
        self.encoder, self.decoder, self.head = encoder, decoder, head
        self.memory_from, self.head_scale = memory_from, head_scale

    @property
    def looks(self) -> str:
        return "decoder.layers.*." + ("attention" if self.memory_from == "joint" else "cross_attention")

    def reach_stacks(self, part: str | None = None) -> list[ReachStack]:
        encoder = [seeing(str(n), layer) for n, layer in enumerate(self.encoder.layers, 1)]
        same = self.memory_from == "same"
        decoder = [seeing(str(n + 1), layer, n if same else -1) for n, layer in enumerate(self.decoder.layers)]
        return chosen_part(part, ReachStack(encoder), ReachStack(decoder))

    def attention_sites(self) -> list[AttentionSite]:
        """In cross-attention, the rows are the tokens that are written next."""
        found = sites_in(self, "encoder.layers", ENCODER, "source")
        for own in sites_in(self, "decoder.layers", DECODER, "written"):
            if own.name.endswith(".cross_attention"):
                found.append(AttentionSite(own.name, Place(ACROSS, own.place.number), "next", "source"))
            elif self.memory_from == "joint":
                found.append(AttentionSite(own.name, own.place, "next", "source and written"))
            else:
                found.append(own)
        return found

    # -- reading ------------------------------------------------------------------------------

    def encode(self, source: Int[Tensor, "B S"], keep: Bool[Tensor, "B S"] | None = None) -> Memory:
        """Read the source, all of it at once. `keep` marks padding."""
        check_tokens("source", source)
        table = self.tokens if self.source_tokens is None else self.source_tokens
        where = positions(source.shape[1], source.device, keep=keep)
        stack = self.encoder
        x = self.dropout(stack.position.at_input(self.embedding(table(source)), where))
        mask = Mask(keep=keep, bias=stack.position.at_scores(where, where), bias_forbids=False)
        if self.memory_from == "same":
            return Memory([stack.finished(state) for state in stack.layers.outputs(x, mask=mask)], keep)
        return Memory(stack.finished(stack.layers(x, mask=mask)), keep)

    # -- writing ------------------------------------------------------------------------------

    def new_caches(self, capacity: int | None = None) -> list[Cache]:
        """Empty caches, one for each layer of the decoder, for the caller to keep."""
        return self.decoder.layers.new_caches(capacity)

    def states(
        self,
        target: Int[Tensor, "B T"],
        memory: Memory,
        *,
        keep: Bool[Tensor, "B T"] | None = None,
        caches: Sequence[Cache] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """The state at each token of the target, from which the head reads the next.

        Padding behind a target needs no `keep`: nothing real looks ahead.
        """
        check_tokens("target", target)
        stack = self.decoder
        count, device, first = target.shape[1], target.device, caches[0] if caches else None
        where = positions(count, device, keep=keep, cache=first)
        x = self.dropout(stack.position.at_input(self.embedding(self.tokens(target)), where))
        bias = stack.position.bias(count, device, keep=keep, cache=first)
        mask = Mask(causal=True, keep=keep, bias=bias, bias_forbids=False)
        return stack.finished(
            stack.layers(x, mask=mask, memory=memory.states, memory_mask=Mask(keep=memory.keep), caches=caches)
        )

    def logits(self, states: Float[Tensor, "*lead D"]) -> Float[Tensor, "*lead V"]:
        """Logits over the vocabulary for any states: all of them, or those of real tokens alone."""
        return self.head(states if self.head_scale == 1.0 else states * self.head_scale)
