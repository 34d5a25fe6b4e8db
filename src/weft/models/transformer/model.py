"""The Transformer: an encoder reads a text, and a decoder writes another while attending to it.

Vaswani et al. 2017, "Attention Is All You Need". One config expresses the paper exactly (sinusoids, post-norm, ReLU,
one table of token vectors for source, target and head, scaled by √width: `transformer-base`, `transformer-big`) and
the parts that our GPT learns fastest with, which are the default here too (docs/decisions/008-default-translator.md).
The format of Marian, the translation models of Hugging Face, is in `marian.py`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, ClassVar

from jaxtyping import Float
from torch import Tensor, nn

from weft.blocks import (
    AttentionConfig,
    FeedForwardConfig,
    JointLayer,
    Layers,
    NormConfig,
    Position,
    PositionConfig,
    PostNorm,
    PreNorm,
    QKNorm,
    TransformerLayer,
    chain,
)
from weft.blocks.attention import HardConfig, SoftmaxConfig
from weft.blocks.feedforward import PlainConfig
from weft.blocks.norm import LayerNormConfig, RMSNormConfig
from weft.blocks.position import ALiBiConfig, RelativeConfig, RotaryConfig, SinusoidalConfig
from weft.config import Between, Count, Share, Size
from weft.errors import ConfigError
from weft.models.attention_fits import check_attention
from weft.models.capabilities import Seq2SeqLM
from weft.models.encoder_decoder import PAIR_SIZING, EncoderDecoder, MemoryFrom, Stack
from weft.models.pair_model import PairModelConfig


def paper(depth: int, width: int, heads: int, dropout: float) -> dict[str, object]:
    """The paper's own parts in a given size, with its shared vocabulary."""
    return {
        "vocab_size": 37000,
        "max_length": 512,
        "width": width,
        "depth": depth,
        "attention": SoftmaxConfig(heads=heads),
        "feed_forward": PlainConfig(activation="relu"),
        "norm": LayerNormConfig(),
        "position": SinusoidalConfig(),
        "qk_norm": False,
        "norm_first": False,
        "dropout": dropout,
    }


PRESETS: dict[str, dict[str, object]] = {
    "transformer-tiny": {"width": 128, "depth": 3},
    "transformer-small": {"width": 256, "depth": 4},
    "transformer-base": paper(6, 512, 8, 0.1),
    "transformer-big": paper(6, 1024, 16, 0.3),
}


class TransformerConfig(PairModelConfig, kind="transformer"):
    """The sizes and parts of a Transformer. Attention heads are a field of `attention`.

    source_vocab_size  of a source with a vocabulary of its own (None: both share one table)
    depth              layers that read, and layers that write unless `decoder_depth` says otherwise
    norm_first         pre-norm layers, a last norm, and token vectors that are normed; or post-norm as in the paper,
                       and token vectors times √width
    memory             what the decoder's layers attend to: the encoder's "last" states, those of the "same" layer, or
                       the last ones in one table with what is written already ("joint")
    head_bias          whether the logits have biases (Marian's have)
    start              the token that a target begins with
    """

    learns: ClassVar = {Seq2SeqLM: replace(PAIR_SIZING, default=True)}
    presets: ClassVar = PRESETS

    vocab_size: Size
    source_vocab_size: Size | None = None
    max_length: Size = 256
    width: Size = 256
    depth: Annotated[int, Between(1, 1000)] = 3
    decoder_depth: Annotated[int, Between(1, 1000)] | None = None
    attention: AttentionConfig = SoftmaxConfig(bias=False)
    feed_forward: FeedForwardConfig = PlainConfig(activation="squared-relu", bias=False)
    norm: NormConfig = RMSNormConfig(learned=False)
    position: PositionConfig = RotaryConfig()
    qk_norm: bool = True
    norm_first: bool = True
    memory: MemoryFrom = "last"
    head_bias: bool = False
    dropout: Share = 0.1
    start: Count = 0

    def check(self) -> None:
        super().check()
        check_attention(self.attention, self.position, writes=True)
        if self.memory == "same" and self.writing != self.depth:
            given = f"memory = same with {self.depth} encoder layers and {self.writing} decoder layers"
            raise ConfigError(given, expected="as many of both: each decoder layer attends to its own encoder layer")
        if self.memory == "joint" and isinstance(self.position, RelativeConfig | ALiBiConfig):
            raise ConfigError(
                f"memory = joint with position = {self.position.kind}",
                expected="rotary, sinusoidal, learned or none: a target and a source token have no distance",
            )
        if self.memory == "joint" and not isinstance(self.attention, SoftmaxConfig | HardConfig):
            given = f"memory = joint with attention.kind = {self.attention.kind}"
            raise ConfigError(given, expected="softmax or hard: one table of the source and the target, and no places")
        if self.start >= self.vocab_size:
            raise ConfigError(f"start = {self.start}", expected=f"a token below {self.vocab_size}")

    @property
    def writing(self) -> int:
        """How many layers write."""
        return self.depth if self.decoder_depth is None else self.decoder_depth

    def build(self) -> Transformer:
        return Transformer(self)


class Scale(nn.Module):
    """x · factor."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def extra_repr(self) -> str:
        return f"{self.factor:g}"

    def forward(self, x: Float[Tensor, "*lead D"]) -> Float[Tensor, "*lead D"]:
        return x * self.factor


class Transformer(EncoderDecoder):
    """Tokens of a source and of a target in, logits over the target's next token out."""

    def __init__(self, config: TransformerConfig) -> None:
        self.config = config
        width = config.width
        tokens = nn.Embedding(config.vocab_size, width)
        source = None if config.source_vocab_size is None else nn.Embedding(config.source_vocab_size, width)
        head = nn.Linear(width, config.vocab_size, bias=config.head_bias)
        head.weight = tokens.weight
        super().__init__(
            tokens=tokens,
            source_tokens=source,
            embedding=config.norm.build(width) if config.norm_first else Scale(math.sqrt(width)),
            encoder=self._stack(config, config.depth, writes=False),
            decoder=self._stack(config, config.writing, writes=True),
            head=head,
            dropout=config.dropout,
            memory_from=config.memory,
        )
        self._initialise()

    @property
    def context(self) -> int:
        """How many tokens of a text it can see at once."""
        return self.config.max_length

    @staticmethod
    def _stack(config: TransformerConfig, depth: int, *, writes: bool) -> Stack:
        heads, head_width = config.attention.sizes(config.width)
        chosen = config.position
        if isinstance(chosen, RelativeConfig):
            chosen = chosen.override({"two_way": not writes})
        position = chosen.build(width=config.width, heads=heads, head_width=head_width, max_length=config.max_length)
        return Stack(
            position=position,
            layers=Layers(_layer(config, number, position, head_width, writes=writes) for number in range(depth)),
            norm=config.norm.build(config.width) if config.norm_first else nn.Identity(),
        )

    def _initialise(self) -> None:
        """The paper's scale of token vectors and Xavier's of maps; or 1/√inputs, and outputs of branches at zero."""
        config = self.config
        for name, p in self.named_parameters():
            if p.dim() < 2 or "position" in name or "norm" in name or ".core." in name:
                if name.endswith("bias"):
                    nn.init.zeros_(p)
            elif name in ("tokens.weight", "source_tokens.weight"):
                nn.init.normal_(p, std=0.02 if config.norm_first else config.width**-0.5)
            elif not config.norm_first:
                nn.init.xavier_uniform_(p)
            elif name.endswith(("attention.output.weight", "feed_forward.down.weight")):
                nn.init.zeros_(p)
            else:
                nn.init.uniform_(p, -math.sqrt(3 / p.shape[1]), math.sqrt(3 / p.shape[1]))


def _layer(
    config: TransformerConfig, number: int, position: Position, head_width: int, *, writes: bool
) -> TransformerLayer:
    def residual() -> PreNorm | PostNorm:
        kind = PreNorm if config.norm_first else PostNorm
        return kind(config.norm.build(config.width), dropout=config.dropout)

    def qk_norm() -> QKNorm | None:
        return QKNorm(head_width, learned=False) if config.qk_norm else None

    attention = config.attention.for_layer(number)
    crosses = writes and config.memory != "joint"
    make = JointLayer if writes and not crosses else TransformerLayer
    return make(
        attention=attention.build(config.width, qk=chain(qk_norm(), position.qk)),
        attention_residual=residual(),
        cross_attention=attention.for_memory().build(config.width, qk=qk_norm()) if crosses else None,
        cross_residual=residual() if crosses else None,
        feed_forward=config.feed_forward.build(config.width),
        feed_forward_residual=residual(),
    )
