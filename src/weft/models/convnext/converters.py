"""How Hugging Face stores a ConvNeXt: the trunk alone (`ConvNextModel`), or with a head for classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from weft.models.base import ModelConfig
from weft.models.class_converter import CLASS_FIELDS, CLASS_SETTINGS, against_classes, class_settings, read_classes
from weft.models.converter import Converter
from weft.models.convnext.model import ConvNeXtConfig
from weft.models.field_table import Field, FieldTable, Fixed, Together, TrainingOnly, Unread
from weft.models.gpt.converters import pair
from weft.models.hugging_face_config import HuggingFaceConfig
from weft.models.images import ImageHead
from weft.models.usual_parts import ACTIVATIONS
from weft.weights import Row, WeightTable

TRUNK, CLASSES = "ConvNextModel", "ConvNextForImageClassification"
STAGE = "stages.{stage}."
LAYER = STAGE + "layers.{layer}."


def _read_stages(theirs: HuggingFaceConfig) -> dict[str, Any]:
    widths = theirs.sizes("hidden_sizes")
    theirs.must_be("num_stages", len(widths), why=f"there are {len(widths)} hidden_sizes")
    return {"widths": widths}


def _write_stages(config: ConvNeXtConfig) -> dict[str, Any]:
    return {"num_stages": len(config.widths), "hidden_sizes": list(config.widths)}


def _read_head(theirs: HuggingFaceConfig) -> dict[str, Any]:
    if not theirs.architecture({TRUNK: False, CLASSES: True}, True):
        return {"head.classes": 0}
    return {f"head.{name}": value for name, value in read_classes(theirs, twins=True).items()}


def _write_head(config: ConvNeXtConfig) -> dict[str, Any]:
    return class_settings(config.head) if config.head.classes else {}


class ConvNextConverter(Converter, name="convnext", architecture=CLASSES, prefix="convnext."):
    """Liu et al. 2022: patches, stages of depthwise convolutions with layer scale, a norm after pooling."""

    family = ConvNeXtConfig
    fields = FieldTable(
        Field("num_channels", "channels", default=3),
        Field("patch_size", "patch", "side", default=4),
        Together(("num_stages", "hidden_sizes"), ("widths",), _read_stages, _write_stages),
        Field("depths", "depths", "sizes"),
        Field("hidden_act", "activation", words=ACTIVATIONS, default="gelu"),
        Field("layer_norm_eps", "last_eps", "number", default=1e-12, resolve=lambda config: config.eps),
        Field("layer_scale_init_value", "layer_scale", "number", default=1e-6),
        Field("drop_path_rate", "drop_path", "number", default=0.0),
        Fixed("kernel", 7),
        Fixed("ff_ratio", 4),
        Fixed("eps", 1e-6),
        Fixed("head.hidden", 0),
        Together(
            ("architectures", *CLASS_SETTINGS),
            CLASS_FIELDS,
            _read_head,
            _write_head,
            lambda config: against_classes(config.head),
        ),
        TrainingOnly("head.dropout"),
        Unread("initializer_range", "image_size", "stage_names", "out_features", "out_indices"),
    )

    def fitted(self, config: ModelConfig, names: Callable[[], Iterable[str]]) -> ConvNeXtConfig:
        """Whether there are classes, the tensors say."""
        assert isinstance(config, ConvNeXtConfig)
        if not config.head.classes or "classifier.weight" in set(names()):
            return config
        return config.override({"head": ImageHead()})

    def architecture_of(self, config: ModelConfig) -> str:
        assert isinstance(config, ConvNeXtConfig)
        return CLASSES if config.head.classes else TRUNK

    def auto_class(self, config: ModelConfig) -> str:
        return "AutoModelForImageClassification" if self.architecture_of(config) == CLASSES else "AutoModel"

    def advice(self, config: ModelConfig) -> str:
        return "train with the paper's parts: --model convnext-tiny, made smaller by model.widths and model.depths"

    def table(self, config: ModelConfig, *, prefix: str) -> WeightTable:
        assert isinstance(config, ConvNeXtConfig)
        stage = prefix + "encoder." + STAGE
        layer = stage + "layers.{layer}."
        return WeightTable(
            *pair(prefix + "embeddings.patch_embeddings", "patches"),
            *pair(prefix + "embeddings.layernorm", "patches_norm"),
            *pair(stage + "downsampling_layer.0", STAGE + "halving.norm"),
            *pair(stage + "downsampling_layer.1", STAGE + "halving.patches"),
            *pair(layer + "dwconv", LAYER + "depthwise"),
            *pair(layer + "layernorm", LAYER + "norm"),
            *pair(layer + "pwconv1", LAYER + "feed_forward.up"),
            *pair(layer + "pwconv2", LAYER + "feed_forward.down"),
            Row(layer + "layer_scale_parameter", LAYER + "scale"),
            *pair(prefix + "layernorm", "norm"),
            *pair("classifier", "classes.1"),
        )
