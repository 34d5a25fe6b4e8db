"""Attention kinds: one file each, picked by name. A new kind is a new file and one line here."""

from weft.blocks.attention.base import CAUSAL, EVERYTHING, AttentionConfig, Grid, Lookup, Mask, Mixer
from weft.blocks.attention.channel import ChannelConfig, ChannelLookup
from weft.blocks.attention.functional import attention
from weft.blocks.attention.hard import HardConfig, HardLookup
from weft.blocks.attention.heads import Attention, HeadsConfig
from weft.blocks.attention.hierarchy import HierarchyConfig, HierarchyLookup
from weft.blocks.attention.qk import Chain, QKNorm, chain
from weft.blocks.attention.softmax import SoftmaxConfig, SoftmaxLookup, renormalise, softargmax
from weft.blocks.attention.window import WindowConfig, WindowLookup

__all__ = [
    "CAUSAL",
    "EVERYTHING",
    "Attention",
    "AttentionConfig",
    "Chain",
    "ChannelConfig",
    "ChannelLookup",
    "Grid",
    "HardConfig",
    "HardLookup",
    "HeadsConfig",
    "HierarchyConfig",
    "HierarchyLookup",
    "Lookup",
    "Mask",
    "Mixer",
    "QKNorm",
    "SoftmaxConfig",
    "SoftmaxLookup",
    "WindowConfig",
    "WindowLookup",
    "attention",
    "chain",
    "renormalise",
    "softargmax",
]
