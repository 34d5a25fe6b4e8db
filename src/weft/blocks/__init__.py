"""The building blocks: modules with plain keyword arguments, shared by every model family."""

from weft.blocks.attention import (
    CAUSAL,
    EVERYTHING,
    Attention,
    AttentionConfig,
    Chain,
    HardLookup,
    Lookup,
    Mask,
    Mixer,
    QKNorm,
    SoftmaxLookup,
    attention,
    chain,
    renormalise,
    softargmax,
)
from weft.blocks.cache import Cache, DecoderCache, JointCache, KeyValueCache, all_positions, positions
from weft.blocks.feedforward import FeedForward, FeedForwardConfig, GatedFeedForward
from weft.blocks.layer import JointLayer, Layers, TransformerLayer
from weft.blocks.norm import LayerNorm, NormConfig, RMSNorm
from weft.blocks.position import ALiBi, Learned, Position, PositionConfig, RelativeBias, Rotary, Sinusoidal, sinusoids
from weft.blocks.residual import PostNorm, PreNorm, Residual
from weft.blocks.unpadded import Unpadded, bunches

__all__ = [
    "CAUSAL",
    "EVERYTHING",
    "ALiBi",
    "Attention",
    "AttentionConfig",
    "Cache",
    "Chain",
    "DecoderCache",
    "FeedForward",
    "FeedForwardConfig",
    "GatedFeedForward",
    "HardLookup",
    "JointCache",
    "JointLayer",
    "KeyValueCache",
    "LayerNorm",
    "Layers",
    "Learned",
    "Lookup",
    "Mask",
    "Mixer",
    "NormConfig",
    "Position",
    "PositionConfig",
    "PostNorm",
    "PreNorm",
    "QKNorm",
    "RMSNorm",
    "RelativeBias",
    "Residual",
    "Rotary",
    "Sinusoidal",
    "SoftmaxLookup",
    "TransformerLayer",
    "Unpadded",
    "all_positions",
    "attention",
    "bunches",
    "chain",
    "positions",
    "renormalise",
    "sinusoids",
    "softargmax",
]
