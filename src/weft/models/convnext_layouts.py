"""How Hugging Face stores a ConvNeXt: the trunk alone (`ConvNextModel`), or with a head for classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from weft.models.base import ModelConfig
from weft.models.class_layouts import class_settings, read_classes
from weft.models.convnext import ConvNeXtConfig
from weft.models.gpt_layouts import ACTIVATIONS, THEIR_WORD, pair
from weft.models.layouts import Foreign, Layout
from weft.models.pictures import PictureHead
from weft.weights import Row, WeightTable

TRUNK, CLASSES = "ConvNextModel", "ConvNextForImageClassification"
KERNEL, RATIO, EPS = 7, 4, 1e-6  # which their class has no words for
STAGE = "stages.{stage}."
LAYER = STAGE + "layers.{layer}."


class ConvNextLayout(Layout, name="convnext", architecture=CLASSES, prefix="convnext."):
    """Liu et al. 2022: patches, stages of depthwise convolutions with layer scale, a norm after pooling."""

    def read_config(self, theirs: Foreign) -> ConvNeXtConfig:
        widths = theirs.sizes("hidden_sizes")
        theirs.must_be("num_stages", len(widths), why=f"there are {len(widths)} hidden_sizes")
        return ConvNeXtConfig(
            channels=theirs.size("num_channels", 3),
            patch=theirs.side("patch_size", 4),
            widths=widths,
            depths=theirs.sizes("depths"),
            kernel=KERNEL,
            ff_ratio=RATIO,
            activation=theirs.word("hidden_act", ACTIVATIONS, "gelu"),
            layer_scale=theirs.number("layer_scale_init_value", 1e-6),
            eps=EPS,
            last_eps=theirs.number("layer_norm_eps", 1e-12),
            drop_path=theirs.number("drop_path_rate", 0.0),
            head=_head(theirs),
        )

    def fitted(self, config: ModelConfig, names: Callable[[], Iterable[str]]) -> ConvNeXtConfig:
        """Whether there are classes, the tensors say."""
        assert isinstance(config, ConvNeXtConfig)
        if not config.head.classes or "classifier.weight" in set(names()):
            return config
        return config.override({"head": PictureHead()})

    def architecture_of(self, config: ModelConfig) -> str:
        assert isinstance(config, ConvNeXtConfig)
        return CLASSES if config.head.classes else TRUNK

    def auto_class(self, config: ModelConfig) -> str:
        return "AutoModelForImageClassification" if self.architecture_of(config) == CLASSES else "AutoModel"

    def why_not(self, config: ModelConfig) -> str:
        if not isinstance(config, ConvNeXtConfig):
            return super().why_not(config)
        return "; ".join(reason for fact, reason in _in_the_way(config) if fact)

    def advice(self, config: ModelConfig) -> str:
        return "train with the paper's parts: --model convnext-tiny, made smaller by model.widths and model.depths"

    def settings(self, config: ModelConfig) -> dict[str, Any]:
        assert isinstance(config, ConvNeXtConfig)
        return {
            "num_channels": config.channels,
            "patch_size": config.patch,
            "num_stages": len(config.widths),
            "hidden_sizes": list(config.widths),
            "depths": list(config.depths),
            "hidden_act": THEIR_WORD[config.activation],
            "layer_norm_eps": config.eps if config.last_eps is None else config.last_eps,
            "layer_scale_init_value": config.layer_scale,
            "drop_path_rate": config.drop_path,
            **(class_settings(config.head) if config.head.classes else {}),
        }

    def losses(self, config: ModelConfig) -> list[str]:
        assert isinstance(config, ConvNeXtConfig)
        share = config.head.dropout
        return [f"head.dropout = {share} (used in training only)"] if share else []

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


def _head(theirs: Foreign) -> PictureHead:
    given = theirs.values.get("architectures")
    names = given if isinstance(given, list) else [given]
    kinds = {TRUNK: False, CLASSES: True}
    has_classes = True
    if given is not None and names:
        has_classes = Foreign({"architectures": names[0]}, theirs.where).word("architectures", kinds)
    return PictureHead(**read_classes(theirs, twins=True)) if has_classes else PictureHead()


def _in_the_way(config: ConvNeXtConfig) -> Iterator[tuple[bool, str]]:
    """What a model may have that their class cannot say, by the field that says it."""
    yield config.kernel != KERNEL, f"kernel is {KERNEL} there"
    yield config.ff_ratio != RATIO, f"ff_ratio is {RATIO} there"
    yield config.eps != EPS, f"eps is {EPS:g} there"
    yield bool(config.head.hidden), "head.hidden is 0 there"
