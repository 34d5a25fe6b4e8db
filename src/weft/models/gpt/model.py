"""GPT: a causal Transformer that predicts the next token.

Radford et al. 2019, "Language Models are Unsupervised Multitask Learners" (GPT-2). One config expresses
GPT-2 exactly (learned positions, layer norm, tanh-GELU, biases, tied head: the `gpt2` presets) and the
default that learns fastest on small machines: rotary positions, q/k norm, RMS norm without weights,
squared ReLU, no biases, and output maps that start at zero (docs/decisions/004-default-gpt.md). The formats
of other programs are in `converters.py` and `llama.py`.
"""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Literal

from torch import nn

from weft.blocks import (
    AttentionConfig,
    FeedForwardConfig,
    NormConfig,
    PositionConfig,
    PreNorm,
    QKNorm,
    TransformerLayer,
    chain,
)
from weft.blocks.attention import SoftmaxConfig
from weft.blocks.feedforward import PlainConfig
from weft.blocks.norm import LayerNormConfig, RMSNormConfig
from weft.blocks.position import LearnedConfig, RotaryConfig
from weft.config import Between, Share, Size
from weft.models.attention_fits import check_attention
from weft.models.base import LanguageConfig
from weft.models.capabilities import Capability, CausalLM, TokenVectorTable
from weft.models.decoder import DecoderTransformer
from weft.models.sizing import LAPTOP_SIZES, Sizing


def gpt2(depth: int, width: int, heads: int) -> dict[str, object]:
    """GPT-2's own parts in a given size."""
    return {
        "max_length": 1024,
        "width": width,
        "depth": depth,
        "attention": SoftmaxConfig(heads=heads),
        "feed_forward": PlainConfig(activation="gelu-tanh"),
        "norm": LayerNormConfig(),
        "position": LearnedConfig(),
        "qk_norm": False,
        "embedding_norm": False,
        "tied": True,
        "zero_outputs": False,
    }


PRESETS: dict[str, dict[str, object]] = {
    "gpt-tiny": {"width": 128, "depth": 4, "max_length": 128},
    "gpt-small": {"width": 256, "depth": 6, "max_length": 256},
    "gpt-base": {"width": 512, "depth": 8, "max_length": 512},
    "gpt2": gpt2(12, 768, 12) | {"vocab_size": 50257},
    "gpt2-medium": gpt2(24, 1024, 16) | {"vocab_size": 50257},
    "gpt2-large": gpt2(36, 1280, 20) | {"vocab_size": 50257},
    "gpt2-xl": gpt2(48, 1600, 25) | {"vocab_size": 50257},
}


class GPTConfig(LanguageConfig, kind="gpt"):
    """The sizes and parts of a GPT. Heads are a field of `attention`, the hidden width of `feed_forward`.

    `qk_norm`: queries and keys normed without weights, or with "learned" ones (Qwen3).
    """

    learns: ClassVar = {CausalLM: Sizing(LAPTOP_SIZES, default=True)}
    presets: ClassVar = PRESETS

    vocab_size: Size
    max_length: Size = 256
    width: Size = 256
    depth: Annotated[int, Between(1, 1000)] = 4
    attention: AttentionConfig = SoftmaxConfig(bias=False)
    feed_forward: FeedForwardConfig = PlainConfig(activation="squared-relu", bias=False)
    norm: NormConfig = RMSNormConfig(learned=False)
    position: PositionConfig = RotaryConfig()
    qk_norm: bool | Literal["learned"] = True
    embedding_norm: bool = True
    tied: bool = False
    zero_outputs: bool = True
    dropout: Share = 0.0

    def check(self) -> None:
        super().check()
        check_attention(self.attention, self.position, writes=True)

    @property
    def context(self) -> int:
        return self.max_length

    @property
    def provides(self) -> frozenset[Capability]:
        return super().provides | {TokenVectorTable}

    def build(self) -> GPT:
        return GPT(self)


class GPT(DecoderTransformer):
    """Tokens in, logits over the next token out, at every position."""

    config: GPTConfig

    def __init__(self, config: GPTConfig) -> None:
        super().__init__(config)
        self._initialise()

    def layer(self, number: int) -> TransformerLayer:
        config = self.config
        qk_norm = QKNorm(self.head_width, learned=config.qk_norm == "learned") if config.qk_norm else None
        return TransformerLayer(
            attention=config.attention.for_layer(number).build(config.width, qk=chain(qk_norm, self.position.qk)),
            attention_residual=PreNorm(config.norm.build(config.width), dropout=config.dropout),
            feed_forward=config.feed_forward.build(config.width),
            feed_forward_residual=PreNorm(config.norm.build(config.width), dropout=config.dropout),
        )

    def _initialise(self) -> None:
        """GPT-2's start (normal, 0.02, outputs scaled down by depth), or 1/√inputs with outputs at zero."""
        config = self.config
        for name, p in self.named_parameters():
            if p.dim() < 2 or "norm" in name or ".core." in name:
                if name.endswith("bias"):
                    nn.init.zeros_(p)
                continue
            ends_branch = name.endswith(("attention.output.weight", "feed_forward.down.weight"))
            if config.zero_outputs:
                if ends_branch or (name == "head.weight" and not config.tied):
                    nn.init.zeros_(p)
                elif name == "tokens.weight":
                    nn.init.normal_(p, std=0.02 if config.tied else 1.0)
                else:
                    nn.init.uniform_(p, -math.sqrt(3 / p.shape[1]), math.sqrt(3 / p.shape[1]))
            else:
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * config.depth) if ends_branch else 0.02)
