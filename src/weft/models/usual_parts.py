"""Rows for the parts that most models of other programs have, and what several tables share.

Plain attention with biases, layer norm with biases, a plain feed-forward part: BERT, Marian and ViT have no settings
for anything else.
"""

from __future__ import annotations

from typing import Any

from weft.models.field_table import Fixed

# their word → ours; the first one for each of ours is the one that is written
ACTIVATIONS = {
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "gelu_fast": "gelu-tanh",
    "gelu": "gelu",
    "relu": "relu",
    "relu2": "squared-relu",
    "silu": "silu",
    "swish": "silu",
}
_LAYER_NORM = "norm is layer with biases there"


def heads(config: Any) -> int:
    """How many heads its attention has."""
    return int(config.attention.sizes(config.width)[0])


def head_width(config: Any) -> int:
    """How wide each of them is."""
    return int(config.attention.sizes(config.width)[1])


def ff_width(config: Any) -> int:
    """How wide its feed-forward part is inside."""
    return int(config.feed_forward.hidden(config.width))


def writing(config: Any) -> int:
    """How many of its layers write."""
    return int(config.writing)


SOFTMAX = Fixed("attention.kind", "softmax")
ONE_KEY_PER_HEAD = Fixed("attention.kv_heads", None, heads, why="attention.kv_heads is heads there")
VALUES_LIKE_KEYS = Fixed("attention.value_width", None, head_width, why="attention.value_width is head_width there")
USUAL_SCALE = Fixed("attention.beta", None, why="attention.beta is 1/√head_width there")
HEADS_SHARE_WIDTH = Fixed(
    "attention.head_width",
    None,
    lambda config: config.width / config.attention.heads_for(config.width),
    why="heads × head_width is width there",
)
LAYER_NORM = (Fixed("norm.kind", "layer", why=_LAYER_NORM), Fixed("norm.bias", True, why=_LAYER_NORM))
PLAIN_FEED_FORWARD = (Fixed("feed_forward.kind", "plain"), Fixed("feed_forward.bias", True))
PLAIN_ATTENTION = (
    SOFTMAX,
    Fixed("attention.bias", True),
    ONE_KEY_PER_HEAD,
    VALUES_LIKE_KEYS,
    USUAL_SCALE,
    HEADS_SHARE_WIDTH,
)
