"""The building blocks: modules with plain keyword arguments, shared by every model family."""

from weft.blocks.attention import (
    CAUSAL,
    EVERYTHING,
    Attention,
    AttentionConfig,
    AttentionCore,
    Chain,
    HardAttention,
    Mask,
    Mixer,
    QKNorm,
    SoftmaxAttention,
    attention,
    chain,
    renormalise,
    softargmax,
)
from weft.blocks.cache import Cache, DecoderCache, JointCache, KeyValueCache, all_positions, positions
from weft.blocks.feedforward import FeedForward, FeedForwardConfig, GatedFeedForward
from weft.blocks.layer import JointLayer, Layers, ParallelLayer, TransformerLayer
from weft.blocks.norm import LayerNorm, NormConfig, RMSNorm
from weft.blocks.packed_sequences import PackedSequences, length_buckets
from weft.blocks.position import ALiBi, Learned, Position, PositionConfig, RelativeBias, Rotary, Sinusoidal, sinusoids
from weft.blocks.residual import PostNorm, PreNorm, Residual

__all__ = [
    "CAUSAL",
    "EVERYTHING",
    "ALiBi",
    "Attention",
    "AttentionConfig",
    "AttentionCore",
    "Cache",
    "Chain",
    "DecoderCache",
    "FeedForward",
    "FeedForwardConfig",
    "GatedFeedForward",
    "HardAttention",
    "JointCache",
    "JointLayer",
    "KeyValueCache",
    "LayerNorm",
    "Layers",
    "Learned",
    "Mask",
    "Mixer",
    "NormConfig",
    "PackedSequences",
    "ParallelLayer",
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
    "SoftmaxAttention",
    "TransformerLayer",
    "all_positions",
    "attention",
    "chain",
    "length_buckets",
    "positions",
    "renormalise",
    "sinusoids",
    "softargmax",
]
