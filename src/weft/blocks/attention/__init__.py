"""Attention kinds: one file each, picked by name. A new kind is a new file in this folder, and nothing else.

All files here are loaded, and a kind puts itself into `AttentionConfig.registry` by being defined. The names below are
those that others use as Python names.
"""

import importlib
import pkgutil

from weft.blocks.attention.alternating import AlternatingConfig
from weft.blocks.attention.base import CAUSAL, EVERYTHING, AttentionConfig, AttentionCore, Grid, Mask, Mixer
from weft.blocks.attention.channel import ChannelAttention, ChannelConfig
from weft.blocks.attention.dilated import DilatedConfig
from weft.blocks.attention.functional import attention
from weft.blocks.attention.global_tokens import GlobalConfig
from weft.blocks.attention.hard import HardAttention, HardConfig
from weft.blocks.attention.heads import Attention, HeadsConfig
from weft.blocks.attention.hierarchy import HierarchyAttention, HierarchyConfig
from weft.blocks.attention.kernel import KernelAttention, KernelConfig
from weft.blocks.attention.linear import LinearAttention, LinearConfig
from weft.blocks.attention.local import LocalConfig
from weft.blocks.attention.pattern import Pattern, PatternAttention, PatternConfig
from weft.blocks.attention.qk import Chain, QKNorm, chain
from weft.blocks.attention.random_features import RandomFeatureAttention, RandomFeaturesConfig
from weft.blocks.attention.softmax import SoftmaxAttention, SoftmaxConfig, renormalise, softargmax
from weft.blocks.attention.strided import StridedConfig
from weft.blocks.attention.union import UnionConfig
from weft.blocks.attention.window import WindowAttention, WindowConfig

for _file in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_file.name}")

__all__ = [
    "CAUSAL",
    "EVERYTHING",
    "AlternatingConfig",
    "Attention",
    "AttentionConfig",
    "AttentionCore",
    "Chain",
    "ChannelAttention",
    "ChannelConfig",
    "DilatedConfig",
    "GlobalConfig",
    "Grid",
    "HardAttention",
    "HardConfig",
    "HeadsConfig",
    "HierarchyAttention",
    "HierarchyConfig",
    "KernelAttention",
    "KernelConfig",
    "LinearAttention",
    "LinearConfig",
    "LocalConfig",
    "Mask",
    "Mixer",
    "Pattern",
    "PatternAttention",
    "PatternConfig",
    "QKNorm",
    "RandomFeatureAttention",
    "RandomFeaturesConfig",
    "SoftmaxAttention",
    "SoftmaxConfig",
    "StridedConfig",
    "UnionConfig",
    "WindowAttention",
    "WindowConfig",
    "attention",
    "chain",
    "renormalise",
    "softargmax",
]
