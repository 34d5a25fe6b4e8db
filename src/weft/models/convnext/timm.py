"""How timm stores ConvNeXts."""

from __future__ import annotations

from typing import Any, ClassVar

from weft.models.base import ModelConfig
from weft.models.convnext.converters import LAYER, STAGE
from weft.models.convnext.model import ConvNeXtConfig, convnext
from weft.models.field_table import Field, FieldTable
from weft.models.gpt.converters import pair
from weft.models.timm import TimmConverter
from weft.weights import Row, WeightTable


class TimmConvNeXtConverter(TimmConverter):
    """The paper's sizes, and timm's own smaller ones, whose maps are convolutions of 1 × 1."""

    family = ConvNeXtConfig
    architectures: ClassVar[dict[str, dict[str, Any]]] = {
        "convnext_atto": convnext((2, 2, 6, 2), 40),
        "convnext_femto": convnext((2, 2, 6, 2), 48),
        "convnext_pico": convnext((2, 2, 6, 2), 64),
        "convnext_nano": convnext((2, 2, 8, 2), 80),
        "convnext_tiny": convnext((3, 3, 9, 3), 96),
        "convnext_small": convnext((3, 3, 27, 3), 96),
        "convnext_base": convnext((3, 3, 27, 3), 128),
        "convnext_large": convnext((3, 3, 27, 3), 192),
        "convnext_xlarge": convnext((3, 3, 27, 3), 256),
        "convnext_xxlarge": convnext((3, 4, 30, 3), 384) | {"eps": 1e-5},
    }
    arguments = FieldTable(
        Field("in_chans", "channels"),
        Field("depths", "depths", "sizes"),
        Field("dims", "widths", "sizes"),
        Field("kernel_sizes", "kernel"),
        Field("norm_eps", "eps", "number"),
        Field("num_classes", "head.classes", "token"),
        Field("drop_rate", "head.dropout", "number"),
        Field("drop_path_rate", "drop_path", "number"),
    )
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
            *pair(block + "conv_dw", LAYER + "depthwise"),
            *pair(block + "norm", LAYER + "norm"),
            Row(block + "mlp.fc1.weight", LAYER + "feed_forward.up.weight", ones=self.ones),
            Row(block + "mlp.fc1.bias", LAYER + "feed_forward.up.bias"),
            Row(block + "mlp.fc2.weight", LAYER + "feed_forward.down.weight", ones=self.ones),
            Row(block + "mlp.fc2.bias", LAYER + "feed_forward.down.bias"),
            Row(block + "gamma", LAYER + "scale"),
            *pair(prefix + "head.norm", "norm"),
            *pair(prefix + "head.fc", "classes.1"),
        )
