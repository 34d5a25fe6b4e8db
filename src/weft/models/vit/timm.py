"""How timm stores ViTs and DeiTs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from weft.errors import UnsupportedError
from weft.models.base import ModelConfig
from weft.models.field_table import Field, FieldTable
from weft.models.gpt.converters import LAYER, pair
from weft.models.timm import TimmConverter
from weft.models.vit.model import PRESETS, ViTConfig
from weft.weights import Row, WeightTable

VIT_NAME = re.compile(r"(vit|deit)_(tiny|small|base|large|huge)_patch(8|14|16|32)_(\d{2,4})")
VIT_SIZES = {"tiny": "vit-ti", "small": "vit-s", "base": "vit-b", "large": "vit-l", "huge": "vit-h"}
OTHER_PARTS = {  # of timm's other kinds of ViT, by their tensors
    "norm_pre": "a norm before the layers",
    "fc_norm": "a norm after pooling",
    "reg_token": "tokens beside the class token",
    "dist_token": "a token for distillation",
    "attn_pool": "attention as pooling",
    "ls1": "layer scale",
    "q_norm": "norms of queries and keys",
    "pre_logits": "a hidden layer before the scores",
}


class TimmViTConverter(TimmConverter):
    """Plain ViTs and DeiTs: a class token, positions for it and the patches, query, key and value in one map."""

    family = ViTConfig
    arguments = FieldTable(
        Field("img_size", "image_size", "side"),
        Field("patch_size", "patch", "side"),
        Field("in_chans", "channels"),
        Field("embed_dim", "width"),
        Field("depth", "depth"),
        Field("num_heads", "attention.heads"),
        Field("num_classes", "head.classes", "token"),
        Field("drop_rate", "head.dropout", "number"),
        Field("attn_drop_rate", "attention.dropout", "number"),
    )
    pools = ("token",)

    def sizes_of(self, architecture: str) -> dict[str, Any] | None:
        match = VIT_NAME.fullmatch(architecture)
        if not match:
            return None
        own, sizes = PRESETS[VIT_SIZES[match[2]]], {"patch": int(match[3]), "image_size": int(match[4])}
        return own | sizes

    def fitted(self, config: ModelConfig, names: Callable[[], Iterable[str]]) -> ModelConfig:
        there = {part for name in names() for part in name.split(".")}
        for part, what in OTHER_PARTS.items():
            if part in there:
                raise UnsupportedError(f"the tensors hold {part}: {what}", expected="a plain ViT, without")
        if "pos_embed" not in there:
            raise UnsupportedError("the tensors hold no pos_embed", expected="learned positions")
        return config

    def table(self, config: ModelConfig, *, prefix: str = "") -> WeightTable:
        block, attention = prefix + "blocks.{layer}.", LAYER + "attention."
        maps = tuple(attention + name for name in ("query", "key", "value"))
        return WeightTable(
            Row(prefix + "cls_token", "class_token", ones=(2, 0)),
            Row(prefix + "pos_embed", "positions", ones=(1, 0)),
            *pair(prefix + "patch_embed.proj", "patches"),
            *pair(block + "norm1", LAYER + "attention_residual.norm"),
            *pair(block + "attn.qkv", maps),
            *pair(block + "attn.proj", attention + "output"),
            *pair(block + "norm2", LAYER + "feed_forward_residual.norm"),
            *pair(block + "mlp.fc1", LAYER + "feed_forward.up"),
            *pair(block + "mlp.fc2", LAYER + "feed_forward.down"),
            *pair(prefix + "norm", "norm"),
            *pair(prefix + "head", "classes.1"),
        )
