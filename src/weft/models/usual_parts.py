"""Where a model's parts differ from the usual ones, with which most families of others were written down.

Plain attention with biases, layer norm with biases, a plain feed-forward part: BERT, Marian and ViT have no words for
anything else. Each fact comes with the reason that is told when it holds.
"""

from __future__ import annotations

from collections.abc import Iterator

from weft.blocks import AttentionConfig, FeedForwardConfig, NormConfig
from weft.blocks.attention import SoftmaxConfig
from weft.blocks.feedforward import PlainConfig
from weft.blocks.norm import LayerNormConfig

Facts = Iterator[tuple[bool, str]]


def unusual_norm(norm: NormConfig) -> Facts:
    yield not isinstance(norm, LayerNormConfig) or not norm.bias, "norm is layer with biases there"


def unusual_feed_forward(part: FeedForwardConfig) -> Facts:
    yield not isinstance(part, PlainConfig), f"feed_forward is plain there, not {part.kind}"
    yield isinstance(part, PlainConfig) and not part.bias, "feed_forward.bias is on there"


def unusual_attention(attention: AttentionConfig, width: int) -> Facts:
    if type(attention) is not SoftmaxConfig:
        yield True, f"attention is softmax there, not {attention.kind}"
        return
    heads, head_width = attention.sizes(width)
    yield not attention.bias, "attention.bias is on there"
    yield attention.kv_heads not in (None, heads), "attention.kv_heads is heads there"
    yield attention.value_width not in (None, head_width), "attention.value_width is head_width there"
    yield attention.beta is not None, "attention.beta is 1/√head_width there"
    yield heads * head_width != width, "heads × head_width is width there"
