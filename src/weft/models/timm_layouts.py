"""How timm stores its models: config.json names an `architecture`, and what it was trained for (`pretrained_cfg`).

Such a folder has no `model_type`. The name of the architecture stands for all its sizes, so these stand here; settings
that were given besides (`model_args`) are read where we have a word for them, and refused where we have none. Folders
are read only: what can be taken away is written as Hugging Face's own classes have it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from weft.errors import DataError, UnsupportedError
from weft.models import convnext, vit
from weft.models.base import ModelConfig
from weft.models.class_layouts import distinct
from weft.models.convnext import ConvNeXtConfig
from weft.models.convnext_layouts import LAYER as CONVNEXT_LAYER
from weft.models.convnext_layouts import STAGE
from weft.models.gpt_layouts import LAYER, pair
from weft.models.layouts import Foreign, Layout
from weft.weights import Row, WeightTable


class TimmLayout(Layout):
    """One family of timm's. A subclass has these, and a `table(config, *, prefix="")`:

    family         our kind of model
    architectures  what timm calls it, without the tag behind the point → fields of our config
    arguments      what may stand in `model_args` → our field
    pools          what may stand as `global_pool`; the first is what it is if nothing is said
    """

    family: ClassVar[str]
    architectures: ClassVar[dict[str, dict[str, Any]]] = {}
    arguments: ClassVar[dict[str, str]] = {}
    pools: ClassVar[tuple[str, ...]] = ("avg",)
    prefix = ""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.name, cls.architecture = f"timm-{cls.family}", cls.family
        Layout.nameless.append(cls())

    def fields(self, architecture: str) -> dict[str, Any] | None:
        """The fields of our config for an architecture; None if it is not known."""
        return self.architectures.get(architecture)

    def is_meant(self, theirs: Foreign) -> bool:
        return self.fields(_architecture(theirs)) is not None

    def read_config(self, theirs: Foreign) -> ModelConfig:
        fields = self.fields(_architecture(theirs))
        assert fields is not None  # `is_meant` said so
        told = Foreign(theirs.table("pretrained_cfg"), f"{theirs.where}: pretrained_cfg")
        args = Foreign(theirs.table("model_args"), f"{theirs.where}: model_args")
        for settings in (told, theirs, args):
            settings.must_be("global_pool", *self.pools, None, why="one vector is made of all states in another way")
        changes = {"head": {"classes": _classes(theirs, told)}, **self._sizes(told)}
        config = ModelConfig.pick({"kind": self.family, **fields}).override(changes)
        config = config.override(self._changes(args))
        labels = _labels(theirs)
        count = config.to_dict()["head"]["classes"]
        return config.override({"head.labels": labels}) if labels and len(labels) == count else config

    def _sizes(self, told: Foreign) -> dict[str, int]:
        """Channels, rows and columns of the pictures."""
        if told.values.get("input_size") is None:
            return {}
        shape = told.sizes("input_size")
        if len(shape) != 3:
            raise DataError(f"{told.where}: input_size = {shape}", expected="channels, rows, columns")
        side = Foreign({"input_size": shape[1:]}, told.where).side("input_size")
        return {"channels": shape[0]} | ({"image_size": side} if "img_size" in self.arguments else {})

    def _changes(self, args: Foreign) -> dict[str, Any]:
        changes = {}
        for word, value in args.values.items():
            if word == "global_pool":
                continue
            if word not in self.arguments:
                raise UnsupportedError(
                    f"{args.where}: {str(word)[:60]} = {str(value)[:60]}", expected=f"{', '.join(self.arguments)}"
                )
            sides = word in ("img_size", "patch_size")
            changes[self.arguments[word]] = args.side(word) if sides else _plain(args, word, value)
        return changes

    def table(self, config: ModelConfig, *, prefix: str = "") -> WeightTable:
        return WeightTable()


def _plain(args: Foreign, word: str, value: Any) -> Any:
    """A number, or a list of sizes; a text would be parsed where the config is changed."""
    if isinstance(value, str | Mapping) or value is None:
        raise DataError(f"{args.where}: {word} = {str(value)[:60]}", expected="a number, or a list of them")
    return args.sizes(word) if isinstance(value, list) else value


def _architecture(theirs: Foreign) -> str:
    """Its name without the tag that says what it was trained on."""
    name = theirs.values.get("architecture")
    return name.split(".")[0] if isinstance(name, str) else ""


def _classes(theirs: Foreign, told: Foreign) -> int:
    for settings in (theirs, told):
        found = settings.values.get("num_classes")
        if found is not None:
            return settings.token("num_classes")
    return 1000


def _labels(theirs: Foreign) -> tuple[str, ...]:
    """Names of the classes, if there are any."""
    given = theirs.values.get("label_names")
    if isinstance(given, Mapping):
        given = [given.get(str(i)) for i in range(len(given))]
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        return ()
    return distinct(given)


# -- ViT --------------------------------------------------------------------------------------

VIT_NAME = re.compile(r"(vit|deit)_(tiny|small|base|large|huge)_patch(8|14|16|32)_(\d{2,4})")
VIT_SIZES = {"tiny": "vit-ti", "small": "vit-s", "base": "vit-b", "large": "vit-l", "huge": "vit-h"}
OTHER_PARTS = {  # of tensors by which timm's other kinds of ViT are told
    "norm_pre": "a norm before the layers",
    "fc_norm": "a norm after pooling",
    "reg_token": "tokens beside the class token",
    "dist_token": "a token for distillation",
    "attn_pool": "attention as pooling",
    "ls1": "layer scale",
    "q_norm": "norms of queries and keys",
    "pre_logits": "a hidden layer before the scores",
}


class TimmViTLayout(TimmLayout):
    """Plain ViTs and DeiTs: a class token, positions for it and the patches, query, key and value in one map."""

    family = "vit"
    arguments: ClassVar[dict[str, str]] = {
        "img_size": "image_size",
        "patch_size": "patch",
        "in_chans": "channels",
        "embed_dim": "width",
        "depth": "depth",
        "num_heads": "attention.heads",
        "num_classes": "head.classes",
        "drop_rate": "head.dropout",
        "attn_drop_rate": "attention.dropout",
    }
    pools = ("token",)

    def fields(self, architecture: str) -> dict[str, Any] | None:
        match = VIT_NAME.fullmatch(architecture)
        if not match:
            return None
        own, sizes = vit.PRESETS[VIT_SIZES[match[2]]], {"patch": int(match[3]), "image_size": int(match[4])}
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


# -- ConvNeXt ---------------------------------------------------------------------------------


class TimmConvNeXtLayout(TimmLayout):
    """The paper's sizes, and timm's own smaller ones, whose maps are convolutions of 1 × 1."""

    family = "convnext"
    architectures: ClassVar[dict[str, dict[str, Any]]] = {
        "convnext_atto": convnext.convnext((2, 2, 6, 2), 40),
        "convnext_femto": convnext.convnext((2, 2, 6, 2), 48),
        "convnext_pico": convnext.convnext((2, 2, 6, 2), 64),
        "convnext_nano": convnext.convnext((2, 2, 8, 2), 80),
        "convnext_tiny": convnext.convnext((3, 3, 9, 3), 96),
        "convnext_small": convnext.convnext((3, 3, 27, 3), 96),
        "convnext_base": convnext.convnext((3, 3, 27, 3), 128),
        "convnext_large": convnext.convnext((3, 3, 27, 3), 192),
        "convnext_xlarge": convnext.convnext((3, 3, 27, 3), 256),
        "convnext_xxlarge": convnext.convnext((3, 4, 30, 3), 384) | {"eps": 1e-5},
    }
    arguments: ClassVar[dict[str, str]] = {
        "in_chans": "channels",
        "depths": "depths",
        "dims": "widths",
        "kernel_sizes": "kernel",
        "norm_eps": "eps",
        "num_classes": "head.classes",
        "drop_rate": "head.dropout",
        "drop_path_rate": "drop_path",
    }
    ones = (0, 2)  # behind the maps of the smaller ones

    def table(self, config: ModelConfig, *, prefix: str = "") -> WeightTable:
        assert isinstance(config, ConvNeXtConfig)
        stage = prefix + STAGE
        block = stage + "blocks.{layer}."
        return WeightTable(
            *pair(prefix + "stem.0", "patches"),
            *pair(prefix + "stem.1", "patches_norm"),
            *pair(stage + "downsample.0", STAGE + "halving.norm"),
            *pair(stage + "downsample.1", STAGE + "halving.patches"),
            *pair(block + "conv_dw", CONVNEXT_LAYER + "depthwise"),
            *pair(block + "norm", CONVNEXT_LAYER + "norm"),
            Row(block + "mlp.fc1.weight", CONVNEXT_LAYER + "feed_forward.up.weight", ones=self.ones),
            Row(block + "mlp.fc1.bias", CONVNEXT_LAYER + "feed_forward.up.bias"),
            Row(block + "mlp.fc2.weight", CONVNEXT_LAYER + "feed_forward.down.weight", ones=self.ones),
            Row(block + "mlp.fc2.bias", CONVNEXT_LAYER + "feed_forward.down.bias"),
            Row(block + "gamma", CONVNEXT_LAYER + "scale"),
            *pair(prefix + "head.norm", "norm"),
            *pair(prefix + "head.fc", "classes.1"),
        )
