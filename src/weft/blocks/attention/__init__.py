"""Attention kinds: one file each, picked by name. A new kind is a new file and one line here."""

from weft.blocks.attention.alternating import AlternatingConfig
from weft.blocks.attention.base import CAUSAL, EVERYTHING, AttentionConfig, Grid, Lookup, Mask, Mixer
from weft.blocks.attention.channel import ChannelConfig, ChannelLookup
from weft.blocks.attention.dilated import DilatedConfig
from weft.blocks.attention.functional import attention
from weft.blocks.attention.global_tokens import GlobalConfig
from weft.blocks.attention.hard import HardConfig, HardLookup
from weft.blocks.attention.heads import Attention, HeadsConfig
from weft.blocks.attention.hierarchy import HierarchyConfig, HierarchyLookup
from weft.blocks.attention.kernel import KernelConfig, KernelLookup
from weft.blocks.attention.linear import LinearConfig, LinearLookup
from weft.blocks.attention.local import LocalConfig
from weft.blocks.attention.pattern import Pattern, PatternConfig, PatternLookup
from weft.blocks.attention.qk import Chain, QKNorm, chain
from weft.blocks.attention.random_features import RandomFeatureLookup, RandomFeaturesConfig
from weft.blocks.attention.softmax import SoftmaxConfig, SoftmaxLookup, renormalise, softargmax
from weft.blocks.attention.strided import StridedConfig
from weft.blocks.attention.union import UnionConfig
from weft.blocks.attention.window import WindowConfig, WindowLookup

__all__ = [
    "CAUSAL",
    "EVERYTHING",
    "AlternatingConfig",
    "Attention",
    "AttentionConfig",
    "Chain",
    "ChannelConfig",
    "ChannelLookup",
    "DilatedConfig",
    "GlobalConfig",
    "Grid",
    "HardConfig",
    "HardLookup",
    "HeadsConfig",
    "HierarchyConfig",
    "HierarchyLookup",
    "KernelConfig",
    "KernelLookup",
    "LinearConfig",
    "LinearLookup",
    "LocalConfig",
    "Lookup",
    "Mask",
    "Mixer",
    "Pattern",
    "PatternConfig",
    "PatternLookup",
    "QKNorm",
    "RandomFeatureLookup",
    "RandomFeaturesConfig",
    "SoftmaxConfig",
    "SoftmaxLookup",
    "StridedConfig",
    "UnionConfig",
    "WindowConfig",
    "WindowLookup",
    "attention",
    "chain",
    "renormalise",
    "softargmax",
]
