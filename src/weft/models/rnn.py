"""Recurrent models: a text is read token by token, and one state of fixed size holds all that was read.

Mikolov et al. 2010, "Recurrent Neural Network Based Language Model"; Zaremba et al. 2014, "Recurrent Neural Network
Regularization" (LSTM layers with dropout between them, never within the recurrence). Three kinds of layer: `rnn`,
`gru`, `lstm` (`blocks/recurrent.py`). With a head for the next token they write; with a head for classes they read a
whole text, in both directions, and say what it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from weft.blocks import Cache
from weft.blocks.recurrent import BothWays, Kind, RecurrentLayer, StateCache, real_first
from weft.blocks.roles import LABEL_HEAD, TASK_HEAD, TOKENS, by_name
from weft.config import Between, Choice, Share, Size
from weft.errors import ConfigError, ShapeError, UnsupportedError
from weft.models.base import LanguageConfig, LayerStack, Maker, stack_of
from weft.models.capabilities import Capability, CarriesState, CausalLM, ClassifiesText, EncodesText
from weft.models.classes import Classes
from weft.models.decoder import CausalDecoder, last_real
from weft.models.encoding import PackedTexts
from weft.models.example_step import example_cross_entropy, example_row
from weft.models.sizing import SizePreset, Sizing

WARM_UP_TOKENS = 256  # tokens read before those that count, where a text is evaluated in several streams
MIN_STREAM_TOKENS = 2048
MAX_STREAMS = 32  # read side by side when a text is evaluated
TOKENS_PER_CALL = 256  # tokens of a stream that one call of the model reads when it is evaluated


class RecurrentHeadConfig(Choice):
    """The head of a recurrent model."""


class NextConfig(RecurrentHeadConfig, kind="next"):
    """The next token. `tied`: the map to the vocabulary is the table of token vectors."""

    tied: bool = False


class RecurrentClassesConfig(Classes, RecurrentHeadConfig, kind="classes"):
    """A score for each class of text, read from the "mean" or the "max" of its states, or the "last" of each
    direction."""

    classes: Size = 2
    pool: Literal["mean", "max", "last"] = "mean"


SIZES = (  # above so many operations of training: width, depth, tokens of a stretch, streams, dropout
    (0, 128, 2, 64, 32, 0.0),
    (4e12, 192, 2, 64, 32, 0.0),
    (2e13, 256, 2, 32, 64, 0.0),
    (8e13, 384, 2, 64, 64, 0.1),
    (3e14, 512, 2, 64, 64, 0.2),
    (3e15, 1024, 2, 64, 64, 0.3),
)
# Characters of Shakespeare, a layer of width 256, 200 steps of 32 streams, validation loss: AdamW 2.00 nats (the best
# of five rates), Muon 1.93, Muon with each gate as a matrix of its own 1.82, in two thirds more time; 1.78 with 64
# streams of 32 tokens instead of 32 of 64. Two layers of width 128 reach 1.84 in half the time. Larger sizes were not
# compared.
LANGUAGE_MODEL_SIZING = Sizing(
    [
        SizePreset({"width": width, "depth": depth, "dropout": dropout}, above, length, streams)
        for above, width, depth, length, streams, dropout in SIZES
    ],
    training={"optimizer": {"kind": "muon", "learning_rate": 0.03, "embedding_rate": 0.05}},
)
CLASSIFIER_SIZING = Sizing(
    [SizePreset({"width": 128, "depth": 1, "dropout": 0.3, "both_ways": True})],
    head={"head": {"kind": "classes"}},
    training={
        "optimizer": {"kind": "adamw", "learning_rate": 0.004, "weight_decay": 0.0},
        "warmup": 0.05,
        "decay": 0.95,
    },
)


class RecurrentConfig(LanguageConfig):
    """The sizes and parts of a recurrent model. `both_ways`: half of each layer reads from the end, which only a model
    that does not write can do."""

    learns: ClassVar[Mapping[Capability, Sizing]] = {
        CausalLM: LANGUAGE_MODEL_SIZING,
        CarriesState: LANGUAGE_MODEL_SIZING,
        ClassifiesText: CLASSIFIER_SIZING,
    }

    vocab_size: Size
    width: Size = 256
    depth: Annotated[int, Between(1, 1000)] = 2
    dropout: Share = 0.0
    both_ways: bool = False
    head: RecurrentHeadConfig = NextConfig()

    def check(self) -> None:
        super().check()
        if self.both_ways and isinstance(self.head, NextConfig):
            raise ConfigError(
                "both_ways with a head for the next token",
                expected="one of them: it would see the token that it predicts",
            )
        if self.both_ways and self.width % 2:
            raise ConfigError(f"width = {self.width} for two directions", expected="an even number")

    @property
    def provides(self) -> frozenset[Capability]:
        if isinstance(self.head, RecurrentClassesConfig):
            return frozenset({ClassifiesText, EncodesText})
        return frozenset({CausalLM, CarriesState, EncodesText})

    def build(self) -> RecurrentModel:
        return RecurrentModel(self)


class RNNConfig(RecurrentConfig, kind="rnn"):
    """The plain recurrence of Elman 1990."""


class GRUConfig(RecurrentConfig, kind="gru"):
    """Gated recurrent units."""


class LSTMConfig(RecurrentConfig, kind="lstm"):
    """Long short-term memory."""

    learns: ClassVar = {**RecurrentConfig.learns, CarriesState: replace(LANGUAGE_MODEL_SIZING, default=True)}


class RecurrentModel(CausalDecoder):
    """Tokens in, logits over the next token out, at every position; or what whole texts are."""

    roles = by_name(tokens=TOKENS, head=TASK_HEAD, classes=LABEL_HEAD)

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.config = config
        width, head = config.width, config.head
        kind: Kind = config.kind  # type: ignore[assignment]
        layer = BothWays if config.both_ways else RecurrentLayer
        self.tokens = nn.Embedding(config.vocab_size, width)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(layer(kind, width, width) for _ in range(config.depth))
        self.head = nn.Linear(width, config.vocab_size) if isinstance(head, NextConfig) else None
        if self.head is not None and isinstance(head, NextConfig):
            if head.tied:
                self.head.weight = self.tokens.weight
            else:
                nn.init.zeros_(self.head.weight)
            nn.init.zeros_(self.head.bias)
        nn.init.normal_(self.tokens.weight, std=width**-0.5 if isinstance(head, NextConfig) and head.tied else 1.0)
        self.classes = self._class_head()

    def _class_head(self) -> nn.Sequential | None:
        head = self.config.head
        if not isinstance(head, RecurrentClassesConfig):
            return None
        last = nn.Linear(self.config.width, head.classes)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        return nn.Sequential(nn.Dropout(self.config.dropout), last)

    def layers_in_order(self) -> list[LayerStack]:
        return [stack_of("layers", self.layers)]

    def example_loss(self, batch: int, length: int, make: Maker) -> Tensor:
        if self.head is not None:
            return super().example_loss(batch, length, make)
        return example_cross_entropy(self.text_logits(example_row(make, self.config.vocab_size, batch, length)), make)

    def new_states(self) -> list[StateCache]:
        """Empty states, one for each layer, for the caller to keep."""
        return [StateCache() for _ in self.layers]

    def new_caches(self, capacity: int | None = None) -> list[Cache]:
        """The same: they are of one size for any `capacity`."""
        return [*self.new_states()]

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        *,
        keep: Bool[Tensor, "B T"] | None = None,
        caches: Sequence[Cache] | None = None,
    ) -> Float[Tensor, "*lead C"]:
        """Logits (B, T, V) over the next token; with a head for classes, (B, classes): each row is a text."""
        if self.classes is None:
            return super().forward(tokens, keep=keep, caches=caches)
        if caches is not None:
            raise UnsupportedError("caches for whole texts", expected="none: a text is read from its first token")
        return self.class_logits(self.hidden(tokens, keep=keep), keep)

    def hidden(
        self,
        tokens: Int[Tensor, "B T"],
        *,
        keep: Bool[Tensor, "B T"] | None = None,
        caches: Sequence[Cache] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """The state after each token, from which the head reads; zeros where there is padding."""
        if tokens.dim() != 2 or not tokens.shape[1]:
            raise ShapeError(f"tokens have shape {tuple(tokens.shape)}", expected="(B, T), with at least one token")
        if keep is None:
            return self._read(tokens, None, caches)
        if keep.shape != tokens.shape:
            raise ShapeError(f"keep has shape {tuple(keep.shape)}", expected=f"{tuple(tokens.shape)}")
        order, lengths = real_first(keep)
        states = self._read(tokens.masked_fill(~keep, 0).gather(1, order), lengths, caches)
        back = order[..., None].expand_as(states)
        return torch.zeros_like(states).scatter(1, back, states).masked_fill(~keep[..., None], 0)

    def _read(
        self, tokens: Int[Tensor, "B T"], lengths: Int[Tensor, "B"] | None, caches: Sequence[Cache] | None
    ) -> Float[Tensor, "B T D"]:
        """Through all layers; padding, if there is any, comes after the real tokens of a row."""
        x = self._dropped(self.tokens(tokens))
        for number, layer in enumerate(self.layers):
            cache = None if caches is None else caches[number]
            x = self._dropped(layer(x, lengths=lengths, cache=cache))
        return x

    def _dropped(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """With dropout, where there is any: a step of a small model is so short that even a dropout of 0 costs time."""
        return self.dropout(x) if self.config.dropout else x

    def logits(self, hidden: Float[Tensor, "*lead D"]) -> Float[Tensor, "*lead V"]:
        if self.head is None:
            raise UnsupportedError(
                f"this {self.config.kind} has no head for the next token: head = {self.config.head.kind}"
            )
        return self.head(hidden)

    # -- whole texts --------------------------------------------------------------------------

    def class_logits(
        self, hidden: Float[Tensor, "N T D"], keep: Bool[Tensor, "N T"] | None = None
    ) -> Float[Tensor, "N C"]:
        """A logit for each class of each text, or the one number of a regression; `keep` marks padding."""
        head = self.config.head
        if self.classes is None or not isinstance(head, RecurrentClassesConfig):
            raise UnsupportedError(f"this {self.config.kind} has no head for classes: head = {head.kind}")
        kept = torch.ones(hidden.shape[:2], dtype=torch.bool, device=hidden.device) if keep is None else keep
        return self.classes(self._pooled(hidden, kept, head.pool))

    def text_logits(self, row: PackedTexts) -> Float[Tensor, "N C"]:
        """Class logits of each text in a packed row."""
        texts = torch.split(row.tokens[0], list(row.packed.lengths))
        tokens = pad_sequence(list(texts), batch_first=True)
        lengths = torch.tensor(row.packed.lengths, device=tokens.device)
        keep = torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]
        return self.class_logits(self._read(tokens, lengths, None), keep)

    def _pooled(self, states: Float[Tensor, "N T D"], keep: Bool[Tensor, "N T"], pool: str) -> Float[Tensor, "N D"]:
        """One vector for each text."""
        outside = ~keep[..., None]
        if pool == "mean":
            return states.masked_fill(outside, 0).sum(1) / keep.sum(1, keepdim=True)
        if pool == "max":
            return states.masked_fill(outside, -torch.inf).amax(1)
        rows = torch.arange(len(states), device=states.device)
        last = states[rows, last_real(keep)]
        if not self.config.both_ways:
            return last
        half = self.config.width // 2  # the half that reads from the end has its last state at the first token
        return torch.cat([last[:, :half], states[rows, keep.int().argmax(1), half:]], -1)

    @torch.no_grad()
    def text_nats(self, ids: NDArray[np.integer[Any]]) -> float:
        """The summed negative log-probability of every token but the first, its state carried through the text.

        A long text is read in streams side by side, as a recurrence is slow along a text and fast across rows. Each
        stream but the first starts `WARM_UP_TOKENS` tokens early, and these do not count.
        """
        asked = len(ids) - 1
        streams = max(1, min(MAX_STREAMS, asked // MIN_STREAM_TOKENS))
        span = -(-asked // streams)
        device = self.tokens.weight.device
        starts = np.arange(streams)[:, None] * span
        caches = self.new_caches()
        if streams > 1:
            before = starts - WARM_UP_TOKENS + np.arange(WARM_UP_TOKENS)
            self.hidden(_ids(ids, before, device), caches=caches)
            for cache in caches:
                assert isinstance(cache, StateCache) and cache.state is not None
                first = torch.arange(streams, device=device)[:, None] == 0  # it has nothing before it
                cache.begin(tuple(part.masked_fill(first, 0) for part in cache.state))
        total = 0.0
        for begin in range(0, span, TOKENS_PER_CALL):
            places = starts + np.arange(begin, min(begin + TOKENS_PER_CALL, span))
            logits = self(_ids(ids, places, device), caches=caches)
            nats = F.cross_entropy(logits.flatten(0, 1), _ids(ids, places + 1, device).flatten(), reduction="none")
            total += float(nats.double()[torch.from_numpy((places < asked).ravel()).to(device)].sum())
        return total


def _ids(ids: NDArray[np.integer[Any]], places: NDArray[np.int64], device: torch.device) -> Tensor:
    """The tokens at these positions; any token at a position outside the text."""
    return torch.from_numpy(np.asarray(ids)[places.clip(0, len(ids) - 1)].astype(np.int64)).to(device)
