"""T5: every task is a text that is read and a text that is written; positions are relative distances alone.

Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer". One config
expresses both published generations: v1.0 (ReLU, and the token table as the head: `t5-small`, `t5-base`) and v1.1
(gated GELU after Shazeer 2020, and a head of its own: `t5-v1_1-small`, and the default in a laptop's size). Norms are
RMS norms, maps have no biases, and scores are not divided by √head_width: the start of the queries does that. The
format of Hugging Face is in `converters.py`.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from torch import nn

from weft.blocks import (
    AttentionConfig,
    FeedForwardConfig,
    Layers,
    NormConfig,
    Position,
    PositionConfig,
    PreNorm,
    TransformerLayer,
)
from weft.blocks.attention import SoftmaxConfig
from weft.blocks.feedforward import GatedConfig, PlainConfig
from weft.blocks.norm import RMSNormConfig
from weft.blocks.position import RelativeConfig
from weft.config import Between, Count, Share, Size
from weft.errors import ConfigError
from weft.models.attention_fits import check_attention
from weft.models.capabilities import Capability, FillsSpans, Seq2SeqLM
from weft.models.encoder_decoder import PAIR_SIZING, EncoderDecoder, Stack
from weft.models.pair_model import PairModelConfig
from weft.models.sizing import LAPTOP_SIZES, Sizing


def published(depth: int, width: int, heads: int, feed_forward: FeedForwardConfig, *, tied: bool) -> dict[str, object]:
    """A size that was published, with its vocabulary."""
    return {
        "vocab_size": 32128,
        "max_length": 512,
        "width": width,
        "depth": depth,
        "attention": SoftmaxConfig(heads=heads, head_width=64, beta=1.0, bias=False, dropout=0.1),
        "feed_forward": feed_forward,
        "tied": tied,
    }


def relu(ff_width: int) -> PlainConfig:
    """The feed-forward part of v1.0."""
    return PlainConfig(ff_width=ff_width, activation="relu", bias=False, dropout=0.1)


def gated_gelu(ff_width: int) -> GatedConfig:
    """The feed-forward part of v1.1."""
    return GatedConfig(ff_width=ff_width, activation="gelu-tanh", dropout=0.1)


PRESETS: dict[str, dict[str, object]] = {
    "t5-tiny": {"width": 128, "depth": 3},
    "t5-small": published(6, 512, 8, relu(2048), tied=True),
    "t5-base": published(12, 768, 12, relu(3072), tied=True),
    "t5-v1_1-small": published(8, 512, 6, gated_gelu(1024), tied=False),
}


class T5Config(PairModelConfig, kind="t5"):
    """The sizes and parts of a T5. Attention heads are a field of `attention`.

    max_length  of the texts it is made for; relative distances have no limit
    depth       layers that read, and layers that write unless `decoder_depth` says otherwise
    position    one table for each stack, shared by its layers; bidirectional in the encoder, one-way in the decoder,
                and none in cross-attention
    tied        whether the head is the token table, for states divided by √width (v1.0), or "unscaled" for states
                as they are; or a map of its own (v1.1)
    dropout     of token vectors, of branches, and of the last states of both stacks; attention and feed-forward have
                their own
    start       the token that a target begins with
    """

    learns: ClassVar = {
        Seq2SeqLM: PAIR_SIZING,
        FillsSpans: Sizing(
            LAPTOP_SIZES, training={"optimizer.embedding_rate": 0.005, "optimizer.head_rate": 0.005}, default=True
        ),
    }
    presets: ClassVar = PRESETS

    vocab_size: Size
    max_length: Size = 256
    width: Size = 256
    depth: Annotated[int, Between(1, 1000)] = 3
    decoder_depth: Annotated[int, Between(1, 1000)] | None = None
    attention: AttentionConfig = SoftmaxConfig(beta=1.0, bias=False)
    feed_forward: FeedForwardConfig = GatedConfig(activation="gelu-tanh")
    norm: NormConfig = RMSNormConfig()
    position: PositionConfig = RelativeConfig()
    tied: bool | Literal["unscaled"] = False
    dropout: Share = 0.1
    start: Count = 0

    def check(self) -> None:
        super().check()
        check_attention(self.attention, self.position, writes=True)
        if isinstance(self.position, RelativeConfig) and not self.position.two_way:
            raise ConfigError(
                "position.two_way = False",
                expected="true: the encoder is bidirectional, and the decoder is one-way by itself",
            )
        if self.start >= self.vocab_size:
            raise ConfigError(f"start = {self.start}", expected=f"a token below {self.vocab_size}")

    @property
    def writing(self) -> int:
        """How many layers write."""
        return self.depth if self.decoder_depth is None else self.decoder_depth

    @property
    def provides(self) -> frozenset[Capability]:
        return frozenset({Seq2SeqLM, FillsSpans})

    def build(self) -> T5:
        return T5(self)


class T5(EncoderDecoder):
    """Tokens of a source and of a target in, logits over the target's next token out."""

    marks_gaps = True

    def __init__(self, config: T5Config) -> None:
        tokens = nn.Embedding(config.vocab_size, config.width)
        head = nn.Linear(config.width, config.vocab_size, bias=False)
        if config.tied:
            head.weight = tokens.weight
        super().__init__(
            tokens=tokens,
            source_tokens=None,
            embedding=nn.Identity(),
            encoder=_stack(config, config.depth, writes=False),
            decoder=_stack(config, config.writing, writes=True),
            head=head,
            dropout=config.dropout,
            head_scale=config.width**-0.5 if config.tied is True else 1.0,
        )
        self.config = config
        self._initialise()

    @property
    def context(self) -> int:
        """How many tokens of a text it can see at once."""
        return self.config.max_length

    def _initialise(self) -> None:
        """Normal, with token vectors of size 1 and maps that keep their inputs' size; queries also take the 1/√head
        width that scores are not given later. A head begins so that logits have size 1, of its own or tied."""
        config = self.config
        width, (_, head_width) = config.width, config.attention.sizes(config.width)
        for name, p in self.named_parameters():
            if p.dim() < 2 or ".core." in name:
                if name.endswith("bias"):
                    nn.init.zeros_(p)
            elif name == "tokens.weight":
                nn.init.normal_(p, std=width**-0.5 if config.tied == "unscaled" else 1.0)
            elif ".position." in name:
                if isinstance(config.position, RelativeConfig):
                    nn.init.normal_(p, std=width**-0.5)
            else:
                inputs = p.shape[1] * (head_width if name.endswith("attention.query.weight") else 1)
                nn.init.normal_(p, std=inputs**-0.5)


def _stack(config: T5Config, depth: int, *, writes: bool) -> Stack:
    heads, head_width = config.attention.sizes(config.width)
    chosen = config.position
    if isinstance(chosen, RelativeConfig):
        chosen = chosen.override({"two_way": not writes})
    position = chosen.build(width=config.width, heads=heads, head_width=head_width, max_length=config.max_length)
    return Stack(
        position=position,
        layers=Layers(_layer(config, number, position, writes=writes) for number in range(depth)),
        norm=config.norm.build(config.width),
        dropout=config.dropout,
    )


def _layer(config: T5Config, number: int, position: Position, *, writes: bool) -> TransformerLayer:
    def residual() -> PreNorm:
        return PreNorm(config.norm.build(config.width), dropout=config.dropout)

    attention = config.attention.for_layer(number)
    return TransformerLayer(
        attention=attention.build(config.width, qk=position.qk),
        attention_residual=residual(),
        cross_attention=attention.for_memory().build(config.width) if writes else None,
        cross_residual=residual() if writes else None,
        feed_forward=config.feed_forward.build(config.width),
        feed_forward_residual=residual(),
    )
