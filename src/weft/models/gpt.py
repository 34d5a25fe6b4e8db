"""GPT: a causal Transformer that predicts the next token.

Radford et al. 2019, "Language Models are Unsupervised Multitask Learners" (GPT-2). One config expresses
GPT-2 exactly (learned positions, layer norm, tanh-GELU, biases, tied head: the `gpt2` presets) and the
default that learns fastest on small machines: rotary positions, q/k norm, RMS norm without weights,
squared ReLU, no biases, and output maps that start at zero (docs/decisions/004-default-gpt.md). How other
programs write such models down stands in `gpt_layouts.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from weft.blocks import (
    AttentionConfig,
    Cache,
    FeedForwardConfig,
    Layers,
    Mask,
    NormConfig,
    PositionConfig,
    PreNorm,
    QKNorm,
    TransformerLayer,
    chain,
    positions,
)
from weft.blocks.attention import SoftmaxConfig
from weft.blocks.feedforward import PlainConfig
from weft.blocks.norm import LayerNormConfig, RMSNormConfig
from weft.blocks.position import LearnedConfig, RotaryConfig
from weft.config import Between, Share, Size
from weft.errors import ShapeError
from weft.models.attention_fits import check_attention
from weft.models.base import LanguageConfig


class GPTConfig(LanguageConfig, kind="gpt"):
    """The sizes and parts of a GPT. Heads are a field of `attention`, the hidden width of `feed_forward`.

    `qk_norm`: queries and keys normed without weights, or with "learned" ones (Qwen3).
    """

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

    def build(self) -> GPT:
        return GPT(self)


class GPT(nn.Module):
    """Tokens in, logits over the next token out, at every position."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        width = config.width
        heads, head_width = config.attention.sizes(width)
        self.tokens = nn.Embedding(config.vocab_size, width)
        self.position = config.position.build(
            width=width, heads=heads, head_width=head_width, max_length=config.max_length
        )
        self.embedding_norm = config.norm.build(width) if config.embedding_norm else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)
        self.layers = Layers(self._layer(number, head_width) for number in range(config.depth))
        self.norm = config.norm.build(width)
        self.head = nn.Linear(width, config.vocab_size, bias=False)
        if config.tied:
            self.head.weight = self.tokens.weight
        self._initialise()

    def _layer(self, number: int, head_width: int) -> TransformerLayer:
        config = self.config
        qk_norm = QKNorm(head_width, learned=config.qk_norm == "learned") if config.qk_norm else None
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
            if p.dim() < 2 or "norm" in name or ".lookup." in name:
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

    def new_caches(self, capacity: int | None = None) -> list[Cache]:
        """Empty caches, one for each layer, for the caller to keep."""
        return self.layers.new_caches(capacity)

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        *,
        keep: Bool[Tensor, "B T"] | None = None,
        caches: Sequence[Cache] | None = None,
    ) -> Float[Tensor, "B T V"]:
        """Logits over the next token. `keep` marks padding in these tokens, `caches` holds earlier ones."""
        return self.head(self.hidden(tokens, keep=keep, caches=caches))

    @property
    def context(self) -> int:
        """How many tokens it can see at once."""
        return self.config.max_length

    def next_logits(
        self, tokens: Int[Tensor, "B T"], *, keep: Bool[Tensor, "B T"] | None = None, caches: Sequence[Cache]
    ) -> Float[Tensor, "B V"]:
        """Logits after the last real token of each row alone; a prompt's other positions need none."""
        hidden = self.hidden(tokens, keep=keep, caches=caches)
        if keep is None:
            return self.head(hidden[:, -1])
        last = keep.shape[1] - 1 - keep.flip(1).int().argmax(1)
        return self.head(hidden[torch.arange(len(hidden), device=hidden.device), last])

    def hidden(
        self,
        tokens: Int[Tensor, "B T"],
        *,
        keep: Bool[Tensor, "B T"] | None = None,
        caches: Sequence[Cache] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """What the last norm gives: the state from which the head reads the next token."""
        if tokens.dim() != 2:
            raise ShapeError(f"tokens have shape {tuple(tokens.shape)}", expected="(B, T)")
        first = caches[0] if caches else None
        count, device = tokens.shape[1], tokens.device
        x = self.position.at_input(self.tokens(tokens), positions(count, device, keep=keep, cache=first))
        x = self.dropout(self.embedding_norm(x))
        mask = Mask(causal=True, keep=keep, bias=self.position.bias(count, device, keep=keep, cache=first))
        x = self.layers(x, mask=mask, caches=caches)
        return self.norm(x)


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
