"""Recurrent translation: one vector between encoder and decoder (`seq2seq`), or attention to every word (`bahdanau`).

Sutskever, Vinyals and Le 2014, "Sequence to Sequence Learning with Neural Networks": a recurrent network reads the
source, backwards, and its last state is all that the decoder begins with. However long the source, it has to fit into
that vector. Both families here use the gated unit of Cho et al. 2014 where Sutskever et al. had LSTMs.

Bahdanau, Cho and Bengio 2015, "Neural Machine Translation by Jointly Learning to Align and Translate": the source is
read in both directions, all states are kept, and before each step the decoder attends to them by additive attention.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from weft.blocks import Cache
from weft.blocks.attentive import Answers, AttentiveGRU
from weft.blocks.recurrent import StateCache
from weft.blocks.roles import FIRST_STATES, GATES, HEAD, TOKENS, Role, by_name
from weft.blocks.sight import Begins, recurrence
from weft.config import Between, Count, Share, Size
from weft.errors import ConfigError, ShapeError, UnsupportedError
from weft.models.capabilities import Seq2SeqLM
from weft.models.pair_model import PairModel, PairModelConfig, check_tokens, pair_rates
from weft.models.sites import ACROSS, AttentionSite, Place, ReachLayer, ReachStack, chosen_part, seeing
from weft.models.sizing import SizePreset, Sizing

SIZES = ((128, 1, 0.1), (256, 1, 0.15), (384, 1, 0.2), (512, 2, 0.2), (768, 2, 0.2))  # width, depth, dropout


class RecurrentPairConfig(PairModelConfig):
    """What both families have.

    source_vocab_size  of a source with a vocabulary of its own (None: both share one table, which is the head's too)
    max_length         tokens of a text that are read or written; the recurrence itself knows no limit
    width              of token vectors and of states
    depth              layers that read, and as many that write
    start              the token that a target begins with
    """

    learns: ClassVar = {
        Seq2SeqLM: Sizing(
            [SizePreset(dict(zip(("width", "depth", "dropout"), size, strict=True))) for size in SIZES],
            training=pair_rates(0.02, 0.015, 0.005),  # larger steps than a Transformer's
        )
    }

    vocab_size: Size
    source_vocab_size: Size | None = None
    max_length: Size = 256
    width: Size = 256
    depth: Annotated[int, Between(1, 100)] = 1
    dropout: Share = 0.1
    start: Count = 0

    def check(self) -> None:
        super().check()
        if self.start >= self.vocab_size:
            raise ConfigError(f"start = {self.start}", expected=f"a token below {self.vocab_size}")


class Seq2SeqConfig(RecurrentPairConfig, kind="seq2seq"):
    """One vector between encoder and decoder: the last state of each layer that reads.

    reverse  whether the source is read from its end: the decoder then starts right after its first token
    """

    reverse: bool = True

    def build(self) -> Seq2Seq:
        return Seq2Seq(self)


class BahdanauConfig(RecurrentPairConfig, kind="bahdanau"):
    """All states of a reader in both directions, each `width` wide, and additive attention over them.

    attention_width  of the hidden layer of additive attention (None: the width)
    """

    attention_width: Size | None = None

    def build(self) -> Bahdanau:
        return Bahdanau(self)


class GRULayers(nn.Module):
    """torch's recurrent kernel, a layer at a time, with dropout behind each."""

    roles = by_name(layers=GATES)

    def __init__(self, layers: Sequence[nn.Module], dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.dropout = nn.Dropout(dropout)

    def reach(self) -> list[ReachLayer]:
        """What each layer sees of the stream that it reads."""
        return [
            ReachLayer(str(n), layer, (recurrence(layer),)) if isinstance(layer, nn.RNNBase) else seeing(str(n), layer)
            for n, layer in enumerate(self.layers, 1)
        ]

    def read(self, x: Float[Tensor, "B S D"], lengths: Int[Tensor, "B"] | None) -> tuple[Tensor, list[Tensor]]:
        """The last layer's states, and every layer's state after the last real token: (directions, B, D)."""
        ends = []
        for layer in self.layers:
            if lengths is None:
                x, end = layer(x)
            else:
                found, end = layer(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
                x = pad_packed_sequence(found, batch_first=True, total_length=x.shape[1])[0]
            x = self.dropout(x)
            ends.append(end)
        return x, ends


@dataclass(frozen=True, eq=False)
class Vector:
    """The encoded sources of a `seq2seq`: (B, L, D), a state for each layer of the decoder."""

    states: Float[Tensor, "B L D"]

    def select(self, rows: Int[Tensor, "R"]) -> Vector:
        """These sources, in this order."""
        return Vector(self.states[rows])


@dataclass(frozen=True, eq=False)
class Annotations:
    """The encoded sources of a `bahdanau`: every state, and the decoder's initial states, (B, L, D)."""

    answers: Answers
    first: Float[Tensor, "B L D"]

    def select(self, rows: Int[Tensor, "R"]) -> Annotations:
        """These sources, in this order."""
        return Annotations(self.answers.select(rows), self.first[rows])


class _Recurrent:
    """Embeddings and logits of both families."""

    roles: ClassVar[Mapping[str, Role]] = by_name(tokens=TOKENS, source_tokens=TOKENS, head=HEAD)

    config: RecurrentPairConfig
    tokens: nn.Embedding
    source_tokens: nn.Embedding | None
    dropout: nn.Dropout
    head: nn.Linear

    @property
    def context(self) -> int:
        """How many tokens of a text it is made for."""
        return self.config.max_length

    def logits(self, states: Float[Tensor, "*lead D"]) -> Float[Tensor, "*lead V"]:
        return self.head(states)

    def new_caches(self, capacity: int | None = None) -> list[Cache]:
        return [StateCache() for _ in range(self.config.depth)]

    def _make_tables(self) -> None:
        """One table for source, target and head, unless the source has its own. Vectors have about length 1 in the
        table, so that logits begin small, and entries of about 1 on their way into a layer."""
        config = self.config
        self.tokens = nn.Embedding(config.vocab_size, config.width)
        source = config.source_vocab_size
        self.source_tokens = None if source is None else nn.Embedding(source, config.width)
        self.dropout = nn.Dropout(config.dropout)
        self.head = nn.Linear(config.width, config.vocab_size, bias=False)
        self.head.weight = self.tokens.weight
        for table in (self.tokens, self.source_tokens):
            if table is not None:
                nn.init.normal_(table.weight, std=config.width**-0.5)

    def _vectors(self, table: nn.Embedding, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        found: Tensor = self.dropout(table(tokens) * self.config.width**0.5)
        return found

    def _source_vectors(self, tokens: Int[Tensor, "B S"]) -> Float[Tensor, "B S D"]:
        return self._vectors(self.tokens if self.source_tokens is None else self.source_tokens, tokens)

    def _caches(self, caches: Sequence[Cache] | None, keep: Tensor | None) -> list[StateCache]:
        """Checked caches, one for each layer; new ones if none are given."""
        if keep is not None and (caches is not None or not torch.equal(keep, keep.cummin(1).values)):
            raise UnsupportedError(
                "padding inside or before a target, or in a target that continues from a cache",
                expected="padding behind the targets alone",
            )
        found = self.new_caches() if caches is None else caches
        own = [cache for cache in found if isinstance(cache, StateCache)]
        if len(own) != len(found) or len(own) != self.config.depth:
            given = f"{len(found)} caches for {self.config.depth} recurrent layers"
            raise ShapeError(given, expected="this model's own new_caches()")
        return own


class Seq2Seq(_Recurrent, PairModel[Vector]):
    """The encoder gives one state for each layer, from which the decoder starts."""

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        self.config: Seq2SeqConfig = config
        self._make_tables()
        width = config.width
        self.encoder, self.decoder = (
            GRULayers([nn.GRU(width, width, batch_first=True) for _ in range(config.depth)], config.dropout)
            for _ in range(2)
        )

    def reach_stacks(self, part: str | None = None) -> list[ReachStack]:
        """Each layer of the decoder begins with the last state of the same layer of the encoder."""
        decoder = [
            ReachLayer(layer.name, layer.module, (Begins(-1), *layer.sees), memory=number)
            for number, layer in enumerate(self.decoder.reach())
        ]
        return chosen_part(part, ReachStack(self.encoder.reach(), turned=self.config.reverse), ReachStack(decoder))

    def encode(self, source: Int[Tensor, "B S"], keep: Bool[Tensor, "B S"] | None = None) -> Vector:
        tokens, lengths, _ = in_front(source, keep, reverse=self.config.reverse)
        _, ends = self.encoder.read(self._source_vectors(tokens), lengths)
        return Vector(torch.stack([end[0] for end in ends], 1))

    def states(
        self,
        target: Int[Tensor, "B T"],
        memory: Vector,
        *,
        keep: Bool[Tensor, "B T"] | None = None,
        caches: Sequence[Cache] | None = None,
    ) -> Float[Tensor, "B T D"]:
        check_tokens("target", target)
        x = self._vectors(self.tokens, target)
        firsts, own = memory.states.unbind(1), self._caches(caches, keep)
        for layer, first, cache in zip(self.decoder.layers, firsts, own, strict=True):
            x, last = layer(x, cache.before(first, len(target))[None].contiguous())
            cache.add((last[0],), target.shape[1])
            x = self.decoder.dropout(x)
        return x


class Bahdanau(_Recurrent, PairModel[Annotations]):
    """A bidirectional encoder, and a decoder that attends to all its states before every token it writes.

    Only the first layer of the decoder attends; the others run in torch's kernel, all tokens at once.
    """

    roles = by_name(first=FIRST_STATES, readout=HEAD)

    def __init__(self, config: BahdanauConfig) -> None:
        super().__init__()
        self.config: BahdanauConfig = config
        self._make_tables()
        width, depth = config.width, config.depth
        inputs = [width, *[2 * width] * (depth - 1)]
        self.encoder = GRULayers(
            [nn.GRU(size, width, batch_first=True, bidirectional=True) for size in inputs], config.dropout
        )
        looking = AttentiveGRU(width, memory_width=2 * width, attention_width=config.attention_width or width)
        following = [nn.GRU(width, width, batch_first=True) for _ in range(depth - 1)]
        self.decoder = GRULayers([looking, *following], config.dropout)
        self.first = nn.Linear(width, depth * width)
        self.readout = nn.Linear(4 * width, 2 * width)

    @property
    def looks(self) -> str:
        return "decoder.layers.0.attention"

    def reach_stacks(self, part: str | None = None) -> list[ReachStack]:
        """All layers of the decoder begin with the backward state at the first source token."""
        decoder = [ReachLayer(one.name, one.module, (Begins(0), *one.sees)) for one in self.decoder.reach()]
        return chosen_part(part, ReachStack(self.encoder.reach()), ReachStack(decoder))

    def attention_sites(self) -> list[AttentionSite]:
        return [AttentionSite(self.looks, Place(ACROSS, 1), "next", "source")]

    def encode(self, source: Int[Tensor, "B S"], keep: Bool[Tensor, "B S"] | None = None) -> Annotations:
        tokens, lengths, front = in_front(source, keep)
        values, ends = self.encoder.read(self._source_vectors(tokens), lengths)
        begun = torch.tanh(self.first(ends[-1][1]))  # from the backward state at the first token
        looking = self.decoder.layers[0]
        assert isinstance(looking, AttentiveGRU)
        return Annotations(looking.remember(values, front), begun.view(len(source), self.config.depth, -1))

    def states(
        self,
        target: Int[Tensor, "B T"],
        memory: Annotations,
        *,
        keep: Bool[Tensor, "B T"] | None = None,
        caches: Sequence[Cache] | None = None,
    ) -> Float[Tensor, "B T D"]:
        check_tokens("target", target)
        vectors = self._vectors(self.tokens, target)
        own, firsts = self._caches(caches, keep), memory.first.unbind(1)
        looking, *following = self.decoder.layers
        begun = own[0].before(firsts[0], len(target))
        if len(begun) % len(memory.first):
            raise ShapeError(f"{len(begun)} rows for {len(memory.first)} sources", expected="as many for each source")
        states, context = looking(vectors, begun, memory.answers)
        own[0].add((states[:, -1],), target.shape[1])
        x = self.decoder.dropout(states)
        for layer, first, cache in zip(following, firsts[1:], own[1:], strict=True):
            x, last = layer(x, cache.before(first, len(target))[None].contiguous())
            cache.add((last[0],), target.shape[1])
            x = self.decoder.dropout(x)
        return self._read(x, context, vectors)

    def _read(self, states: Tensor, context: Tensor, vectors: Tensor) -> Float[Tensor, "B T D"]:
        """The head's input: maxout of two maps of the state, the context and the last token."""
        both = self.readout(torch.cat([states, context, vectors], -1))
        found: Tensor = self.dropout(both.view(*both.shape[:-1], -1, 2).amax(-1))
        return found


def in_front(
    source: Int[Tensor, "B S"], keep: Bool[Tensor, "B S"] | None, *, reverse: bool = False
) -> tuple[Int[Tensor, "B S"], Int[Tensor, "B"] | None, Bool[Tensor, "B S"] | None]:
    """The real tokens of each row moved to the front, in their order or reversed; how many there are, and which slots
    they fill then. Tokens of padding are ignored."""
    check_tokens("source", source)
    if source.shape[1] == 0 or (keep is not None and not keep.any(1).all()):
        raise ShapeError("a source without tokens", expected="at least one in each row")
    if keep is None:
        return (source.flip(1) if reverse else source), None, None
    if keep.shape != source.shape:
        raise ShapeError(f"keep has shape {tuple(keep.shape)}", expected=f"{tuple(source.shape)}, as the source has")
    lengths = keep.sum(1)
    front = torch.arange(source.shape[1], device=source.device) < lengths[:, None]
    order = (~keep).to(torch.int8).argsort(dim=1, stable=True)
    if reverse:
        last = lengths[:, None] - 1 - torch.arange(source.shape[1], device=source.device)
        order = order.gather(1, last.clamp(min=0))
    return source.gather(1, order).masked_fill(~front, 0), lengths.cpu(), front
