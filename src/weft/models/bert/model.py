"""BERT: a Transformer that reads a whole text in both directions at once.

Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding". One
config expresses BERT exactly (learned positions, post-norm, GELU, biases: `bert-base`, `bert-large`) and the
parts that our GPT learns fastest with, which are the default here too. The trunk gives a vector for each token;
what is read from these is a small head of its own: masked tokens, sentence pairs, classes. The format of
Hugging Face is in `converters.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from weft.blocks import (
    AttentionConfig,
    FeedForwardConfig,
    Layers,
    Mask,
    NormConfig,
    PackedSequences,
    PositionConfig,
    PostNorm,
    PreNorm,
    QKNorm,
    TransformerLayer,
    chain,
    positions,
)
from weft.blocks.attention import SoftmaxConfig
from weft.blocks.feedforward import Activation, PlainConfig, activate
from weft.blocks.norm import LayerNormConfig, RMSNormConfig
from weft.blocks.position import LearnedConfig, RotaryConfig
from weft.blocks.roles import LABEL_HEAD, SEGMENTS, TASK_HEAD, TOKENS, by_name
from weft.config import Between, Choice, Share, Size
from weft.errors import ConfigError, ShapeError, UnsupportedError, did_you_mean
from weft.models.attention_fits import check_attention
from weft.models.base import LayerStack, Maker, Model, ModelConfig, stack_of
from weft.models.capabilities import Capability, ClassifiesText, EncodesText, FillsMasks, Ids, TagsTokens
from weft.models.classes import Classes
from weft.models.encoding import PackedTexts
from weft.models.example_step import example_cross_entropy, example_row
from weft.models.sizing import LAPTOP_SIZES, SizePreset, Sizing

MASKED_SHARE = 0.15  # of the tokens in an example step, as in the paper

# -- heads ------------------------------------------------------------------------------------


class HeadConfig(Choice):
    """The head of a BERT.

    `pooled`: whether it reads from one vector for each text (`BERTConfig.pool` says which), as pairs and classes do.
    """

    pooled: ClassVar[bool] = False
    pairs: ClassVar[bool] = False


class NoHeadConfig(HeadConfig, kind="none"):
    """The trunk alone: the model gives the states of the tokens."""


class PooledConfig(HeadConfig, kind="pooled"):
    """One vector for the text, by `pooled`; the model gives the states of the tokens."""

    pooled = True


class MaskedConfig(HeadConfig, kind="masked"):
    """Masked tokens. `tied`: the map to the vocabulary is the table of token vectors."""

    tied: bool = True


class QuestionsConfig(HeadConfig):
    """Questions about two texts, each with its own map: "next-sentence" has two `answers`, others may have more."""

    pooled, pairs = True, True
    questions: tuple[str, ...] = ("next-sentence",)
    answers: tuple[Size, ...] = (2,)

    def check(self) -> None:
        super().check()
        if len(self.questions) != len(self.answers) or not self.questions:
            given = f"{len(self.questions)} questions and {len(self.answers)} numbers of answers"
            raise ConfigError(given, expected="a number of answers for each question, and at least one question")
        if len(set(self.questions)) != len(self.questions):
            raise ConfigError("questions that occur twice", expected="a name of its own for each question")
        if any(count < 2 for count in self.answers):
            raise ConfigError(f"answers = {self.answers}", expected="at least 2 for each question")
        for name in self.questions:  # they become names of parameters
            if not re.fullmatch(r"[a-z][a-z0-9-]{0,40}", name) or hasattr(nn.ModuleDict, name):
                raise ConfigError(f"the question {name[:50]!r}", expected="small letters and hyphens, as next-sentence")


class PairsConfig(QuestionsConfig, kind="pairs"):
    """Questions about two texts: does the second follow the first?"""


class PretrainingConfig(MaskedConfig, QuestionsConfig, kind="pretraining"):
    """Masked tokens and sentence pairs, the two tasks BERT was trained on."""


class ClassesConfig(Classes, HeadConfig, kind="classes"):
    """A score for each class of text. `dropout` None: as in the trunk."""

    pooled = True
    classes: Size = 2
    dropout: Share | None = None


class TokensConfig(HeadConfig, kind="tokens"):
    """A score for each label of each token: entities, parts of speech. `dropout` None: as in the trunk."""

    labels: tuple[str, ...]
    dropout: Share | None = None

    def check(self) -> None:
        super().check()
        if len(self.labels) < 2 or len(set(self.labels)) != len(self.labels):
            raise ConfigError(f"labels = {', '.join(self.labels) or 'none'}", expected="two or more different names")


class MaskedHead(nn.Module):
    """output(norm(activation(map(x)))): logits over the vocabulary."""

    def __init__(self, width: int, vocab_size: int, *, activation: Activation, norm: nn.Module) -> None:
        super().__init__()
        self.activation = activation
        self.map = nn.Linear(width, width)
        self.norm = norm
        self.output = nn.Linear(width, vocab_size)

    def forward(self, hidden: Float[Tensor, "*lead D"]) -> Float[Tensor, "*lead V"]:
        return self.output(self.norm(activate(self.map(hidden), self.activation)))


# -- the model --------------------------------------------------------------------------------


def bert(depth: int, width: int, heads: int) -> dict[str, object]:
    """BERT's own parts in a given size, with the heads it was trained with."""
    return {
        "vocab_size": 30522,
        "max_length": 512,
        "width": width,
        "depth": depth,
        "attention": SoftmaxConfig(heads=heads, dropout=0.1),
        "feed_forward": PlainConfig(activation="gelu"),
        "norm": LayerNormConfig(eps=1e-12),
        "position": LearnedConfig(),
        "qk_norm": False,
        "norm_first": False,
        "zero_outputs": False,
        "dropout": 0.1,
        "pool": "first",
        "head": PretrainingConfig(),
    }


PRESETS: dict[str, dict[str, object]] = {
    "bert-tiny": {"width": 128, "depth": 4, "max_length": 128},
    "bert-small": {"width": 256, "depth": 6, "max_length": 256},
    "bert-base": bert(12, 768, 12),
    "bert-large": bert(24, 1024, 16),
}


PRETRAINING_RATES = {"optimizer.learning_rate": 0.015, "optimizer.embedding_rate": 0.002}  # the table is also the head
CLASSIFYING_RATES = {  # low for the matrices, which would memorise a small table
    "optimizer.learning_rate": 0.002,
    "optimizer.embedding_rate": 0.005,
    "optimizer.head_rate": 0.005,
    "warmup": 0.05,
    "decay": 0.95,
}


class BERTConfig(ModelConfig, kind="bert"):
    """The sizes and parts of a BERT. Attention heads are a field of `attention`, the hidden width of `feed_forward`.

    `norm_first`: pre-norm layers and a last norm, or BERT's own post-norm. `segments`: how many kinds of text a
    row may hold (first and second of a pair). `qk_norm`: without weights, or with "learned" ones. `pool`: the vector
    of a whole text, the "mean" of its states, or a map and tanh of the "first", as in BERT.
    """

    learns: ClassVar = {
        FillsMasks: Sizing(LAPTOP_SIZES, training=PRETRAINING_RATES, default=True),
        ClassifiesText: Sizing(
            [SizePreset({"width": 128, "depth": 2, "attention.heads": 4, "dropout": 0.3})],
            head={"head": {"kind": "classes"}},
            training=CLASSIFYING_RATES,
            default=True,
        ),
        TagsTokens: Sizing(
            [SizePreset({"width": 128, "depth": 2, "attention.heads": 4, "dropout": 0.1})],
            head={"head": {"kind": "tokens", "labels": ("O", "B", "I")}},
            training=CLASSIFYING_RATES | {"optimizer.learning_rate": 0.01},  # every word is an example
            default=True,
        ),
    }
    presets: ClassVar = PRESETS

    vocab_size: Size
    max_length: Size = 256
    width: Size = 256
    depth: Annotated[int, Between(1, 1000)] = 4
    segments: Size = 2
    attention: AttentionConfig = SoftmaxConfig(bias=False)
    feed_forward: FeedForwardConfig = PlainConfig(activation="squared-relu", bias=False)
    norm: NormConfig = RMSNormConfig()
    position: PositionConfig = RotaryConfig()
    qk_norm: bool | Literal["learned"] = True
    norm_first: bool = True
    zero_outputs: bool = True
    dropout: Share = 0.0
    pool: Literal["mean", "first"] = "mean"
    head: HeadConfig = MaskedConfig()

    def check(self) -> None:
        super().check()
        check_attention(self.attention, self.position, writes=False)

    @property
    def context(self) -> int:
        return self.max_length

    @property
    def provides(self) -> frozenset[Capability]:
        heads = {MaskedConfig: FillsMasks, ClassesConfig: ClassifiesText, TokensConfig: TagsTokens}
        return frozenset({EncodesText, *(can for head, can in heads.items() if isinstance(self.head, head))})

    def build(self) -> BERT:
        return BERT(self)


class BERT(Model):
    """Tokens in, logits of its head out; `hidden` gives the states that `masked_logits`, `pair_logits`, `class_logits`
    and `token_logits` read. A trunk (head "none" or "pooled") gives these states by the call too."""

    roles = by_name(
        tokens=TOKENS,
        segments=SEGMENTS,
        masked=TASK_HEAD,
        pooler=TASK_HEAD,
        pairs=TASK_HEAD,
        classes=LABEL_HEAD,
        labels=LABEL_HEAD,
    )
    reads_pairs = True

    def __init__(self, config: BERTConfig) -> None:
        super().__init__()
        self.config = config
        width, head = config.width, config.head
        heads, head_width = config.attention.sizes(width)
        self.tokens = nn.Embedding(config.vocab_size, width)
        self.segments = nn.Embedding(config.segments, width)
        self.position = config.position.build(
            width=width, heads=heads, head_width=head_width, max_length=config.max_length
        )
        self.embedding_norm = config.norm.build(width)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = Layers(self._layer(number, head_width) for number in range(config.depth))
        self.norm = config.norm.build(width) if config.norm_first else nn.Identity()
        self.masked = self._masked_head()
        self.pooler = nn.Linear(width, width) if head.pooled and config.pool == "first" else None
        self.pairs = self._pair_heads()
        self.classes = self._class_head()
        self.labels = self._label_head()
        self._initialise()

    def _layer(self, number: int, head_width: int) -> TransformerLayer:
        config = self.config
        residual = PreNorm if config.norm_first else PostNorm
        qk_norm = QKNorm(head_width, learned=config.qk_norm == "learned") if config.qk_norm else None
        return TransformerLayer(
            attention=config.attention.for_layer(number).build(config.width, qk=chain(qk_norm, self.position.qk)),
            attention_residual=residual(config.norm.build(config.width), dropout=config.dropout),
            feed_forward=config.feed_forward.build(config.width),
            feed_forward_residual=residual(config.norm.build(config.width), dropout=config.dropout),
        )

    def _masked_head(self) -> MaskedHead | None:
        config, width = self.config, self.config.width
        if not isinstance(config.head, MaskedConfig):
            return None
        activation = config.feed_forward.activation
        head = MaskedHead(width, config.vocab_size, activation=activation, norm=config.norm.build(width))
        if config.head.tied:
            head.output.weight = self.tokens.weight
        return head

    def _pair_heads(self) -> nn.ModuleDict | None:
        head = self.config.head
        if not isinstance(head, QuestionsConfig):
            return None
        asked = zip(head.questions, head.answers, strict=True)
        return nn.ModuleDict({question: nn.Linear(self.config.width, answers) for question, answers in asked})

    def _class_head(self) -> nn.Sequential | None:
        head = self.config.head
        if not isinstance(head, ClassesConfig):
            return None
        dropout = self.config.dropout if head.dropout is None else head.dropout
        return nn.Sequential(nn.Dropout(dropout), nn.Linear(self.config.width, head.classes))

    def _label_head(self) -> nn.Sequential | None:
        head = self.config.head
        if not isinstance(head, TokensConfig):
            return None
        dropout = self.config.dropout if head.dropout is None else head.dropout
        return nn.Sequential(nn.Dropout(dropout), nn.Linear(self.config.width, len(head.labels)))

    def _initialise(self) -> None:
        """BERT's start (normal, 0.02, biases 0); or layers by 1/√inputs, and outputs of branches and heads at zero."""
        for name, p in self.named_parameters():
            if p.dim() < 2 or ".core." in name:
                if name.endswith("bias"):
                    nn.init.zeros_(p)
                continue
            ends_branch = name.endswith(("attention.output.weight", "feed_forward.down.weight"))
            ends = ends_branch or name.startswith(("pairs.", "classes.", "labels.", "masked.output."))
            if self.config.zero_outputs and ends:
                nn.init.zeros_(p)
            elif self.config.zero_outputs and name.startswith("layers."):
                nn.init.uniform_(p, -math.sqrt(3 / p.shape[1]), math.sqrt(3 / p.shape[1]))
            else:
                nn.init.normal_(p, std=0.02)

    def layers_in_order(self) -> list[LayerStack]:
        return [stack_of("layers", self.layers)]

    def example_inputs(self, batch: int, length: int, make: Maker) -> tuple[Tensor, ...]:
        config = self.config
        tokens = make((batch, length), config.vocab_size)
        return (tokens, make((batch, length), config.segments)) if config.head.pairs else (tokens,)

    def example_loss(self, batch: int, length: int, make: Maker) -> Tensor:
        """Texts in one row, as training reads them; the loss of each head, or the sum of all states without one."""
        config, head = self.config, self.config.head
        row = example_row(make, config.vocab_size, batch, length, segments=config.segments if head.pairs else 0)
        states = row.states(self)
        losses = []
        if isinstance(head, MaskedConfig):
            hidden = max(1, round(MASKED_SHARE * batch * length))
            logits = self.masked_logits(states[0][make((hidden,), batch * length)])
            losses.append(example_cross_entropy(logits, make))
        for question in self.pairs or ():
            losses.append(example_cross_entropy(self.pair_logits(states, question, packed=row.packed), make))
        if self.labels is not None:
            losses.append(example_cross_entropy(self.token_logits(states[0]), make))
        if self.classes is not None:
            losses.append(example_cross_entropy(self.class_logits(states, packed=row.packed), make))
        if not losses:
            return (self.pooled(states, packed=row.packed) if head.pooled else states).sum()
        return sum(losses[1:], losses[0])

    @property
    def context(self) -> int:
        """How many tokens it can see at once."""
        return self.config.max_length

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        segments: Int[Tensor, "B T"] | None = None,
        keep: Bool[Tensor, "B T"] | None = None,
        *,
        packed: PackedSequences | None = None,
    ) -> Float[Tensor, "*lead C"]:
        """Logits of its head: (B, T, V) of hidden tokens, (B, T, labels), (N, classes), or (N, answers) to its first
        question about pairs. A trunk (head "none" or "pooled") gives the states (B, T, D). Of several heads, the result
        is that of the masked one."""
        hidden = self.hidden(tokens, segments, keep, packed=packed)
        if self.masked is not None:
            return self.masked_logits(hidden)
        if self.labels is not None:
            return self.token_logits(hidden)
        if self.classes is not None:
            return self.class_logits(hidden, keep, packed=packed)
        if self.pairs is not None:
            return self.pair_logits(hidden, next(iter(self.pairs)), keep, packed=packed)
        return hidden

    def hidden(
        self,
        tokens: Int[Tensor, "B T"],
        segments: Int[Tensor, "B T"] | None = None,
        keep: Bool[Tensor, "B T"] | None = None,
        *,
        packed: PackedSequences | None = None,
    ) -> Float[Tensor, "B T D"]:
        """The state of each token. `segments` says to which text of the row a token belongs (None: the first).

        `keep` marks padding; the result at padding has no meaning. With `packed`, the one row is several
        texts, and each attends to itself alone.
        """
        if tokens.dim() != 2:
            raise ShapeError(f"tokens have shape {tuple(tokens.shape)}", expected="(B, T)")
        if segments is not None and segments.shape != tokens.shape:
            raise ShapeError(f"segments have shape {tuple(segments.shape)}", expected=f"{tuple(tokens.shape)}")
        if packed is None:
            where = places = positions(tokens.shape[1], tokens.device, keep=keep)
        else:
            where, places = packed.positions(tokens.device), torch.arange(packed.longest, device=tokens.device)
        told = self.segments.weight[0] if segments is None else self.segments(segments)
        x = self.position.at_input(self.tokens(tokens) + told, where)
        x = self.dropout(self.embedding_norm(x))
        mask = Mask(keep=keep, bias=self.position.at_scores(places, places), packed=packed)
        return self.norm(self.layers(x, mask=mask))

    def text_states(self, texts: Sequence[Ids]) -> list[Tensor]:
        """(its length, D) for each text, read as one row."""
        row = PackedTexts.of(texts).to(self.tokens.weight.device)
        return row.packed.split(row.states(self))

    # -- heads --------------------------------------------------------------------------------

    def masked_logits(self, hidden: Float[Tensor, "*lead D"]) -> Float[Tensor, "*lead V"]:
        """Logits over the vocabulary for any states: all of a text, or those of the hidden tokens alone."""
        if self.masked is None:
            raise self._without("masked tokens", "masked or pretraining")
        return self.masked(hidden)

    def pooled(
        self,
        hidden: Float[Tensor, "B T D"],
        keep: Bool[Tensor, "B T"] | None = None,
        *,
        packed: PackedSequences | None = None,
    ) -> Float[Tensor, "N D"]:
        """One vector for each text: the mean of its states, or tanh of a map of its first real token's."""
        if not self.config.head.pooled:
            raise self._without("whole texts", "pooled, pairs, pretraining or classes")
        if self.pooler is None:
            if packed is not None:
                return packed.means(hidden)
            if keep is None:
                return hidden.mean(1)
            return hidden.masked_fill(~keep[..., None], 0).sum(1) / keep.sum(1, keepdim=True).clamp(min=1)
        first = hidden[:, 0]
        if packed is not None:
            first = hidden[0, packed.starts(hidden.device)]
        elif keep is not None:
            first = hidden[torch.arange(len(hidden), device=hidden.device), keep.int().argmax(1)]
        return self.pooler(first).tanh()

    def pair_logits(
        self,
        hidden: Float[Tensor, "B T D"],
        question: str = "next-sentence",
        keep: Bool[Tensor, "B T"] | None = None,
        *,
        packed: PackedSequences | None = None,
    ) -> Float[Tensor, "N A"]:
        """A logit for each answer to a question about two texts; "next-sentence": yes (0) and no (1)."""
        if self.pairs is None:
            raise self._without("pairs", "pairs or pretraining")
        if question not in self.pairs:
            raise UnsupportedError(f"this BERT has no question {question!r}", advice=did_you_mean(question, self.pairs))
        return self.pairs[question](self.pooled(hidden, keep, packed=packed))

    def class_logits(
        self,
        hidden: Float[Tensor, "B T D"],
        keep: Bool[Tensor, "B T"] | None = None,
        *,
        packed: PackedSequences | None = None,
    ) -> Float[Tensor, "N C"]:
        """A logit for each class of each text, or the one number of a regression."""
        if self.classes is None:
            raise self._without("classes", "classes")
        return self.classes(self.pooled(hidden, keep, packed=packed))

    def text_logits(self, row: PackedTexts) -> Float[Tensor, "N C"]:
        return self.class_logits(row.states(self), packed=row.packed)

    def token_logits(self, hidden: Float[Tensor, "*lead D"]) -> Float[Tensor, "*lead C"]:
        """A logit for each label, for any states: all of a text, or those of the first subwords alone."""
        if self.labels is None:
            raise self._without("labels of tokens", "tokens")
        return self.labels(hidden)

    def _without(self, what: str, heads: str) -> UnsupportedError:
        return UnsupportedError(f"this BERT has no head for {what}: head = {self.config.head.kind}", expected=heads)
