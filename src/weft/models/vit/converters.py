"""How Hugging Face stores a ViT: the trunk with its pooler (`ViTModel`), or with a head for classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from weft.models.base import ModelConfig
from weft.models.class_converter import CLASS_FIELDS, CLASS_SETTINGS, against_classes, class_settings, read_classes
from weft.models.converter import Converter
from weft.models.field_table import Field, FieldTable, Fixed, Only, StartOnly, Together, TrainingOnly, Unread
from weft.models.gpt.converters import LAYER, pair
from weft.models.hugging_face_config import HuggingFaceConfig
from weft.models.images import ImageHead
from weft.models.usual_parts import ACTIVATIONS, LAYER_NORM, PLAIN_ATTENTION, PLAIN_FEED_FORWARD, ff_width, heads
from weft.models.vit.model import ViTConfig
from weft.weights import Ignored, Row, WeightTable

TRUNK, CLASSES = "ViTModel", "ViTForImageClassification"
NO_POOLER = "a trunk has its pooler there: head.hidden"
# names in most files, and those of transformers 5, which some files have
OLD = {
    "encoder.layer.{layer}.attention.attention.query": "attention.query",
    "encoder.layer.{layer}.attention.attention.key": "attention.key",
    "encoder.layer.{layer}.attention.attention.value": "attention.value",
    "encoder.layer.{layer}.attention.output.dense": "attention.output",
    "encoder.layer.{layer}.layernorm_before": "attention_residual.norm",
    "encoder.layer.{layer}.intermediate.dense": "feed_forward.up",
    "encoder.layer.{layer}.output.dense": "feed_forward.down",
    "encoder.layer.{layer}.layernorm_after": "feed_forward_residual.norm",
}
NEW = {
    "layers.{layer}.attention.q_proj": "attention.query",
    "layers.{layer}.attention.k_proj": "attention.key",
    "layers.{layer}.attention.v_proj": "attention.value",
    "layers.{layer}.attention.o_proj": "attention.output",
    "layers.{layer}.layernorm_before": "attention_residual.norm",
    "layers.{layer}.mlp.fc1": "feed_forward.up",
    "layers.{layer}.mlp.fc2": "feed_forward.down",
    "layers.{layer}.layernorm_after": "feed_forward_residual.norm",
}


def _read_head(theirs: HuggingFaceConfig) -> dict[str, Any]:
    """What their class has on top; without a class, everything that there may be, until `fitted` reads the tensors."""
    kind = theirs.architecture({TRUNK: TRUNK, CLASSES: CLASSES}, "")
    hidden = 0 if kind == CLASSES else theirs.size("pooler_output_size", theirs.size("hidden_size"))
    classes = {} if kind == TRUNK else read_classes(theirs, twins=True)
    return {f"head.{name}": value for name, value in {**classes, "hidden": hidden}.items()}


def _write_head(config: ViTConfig) -> dict[str, Any]:
    head = config.head
    pooler = {"pooler_output_size": head.hidden, "pooler_act": "tanh"} if head.hidden else {}
    return (class_settings(head) if head.classes else {}) | pooler


def _against_head(config: ViTConfig) -> Iterator[str]:
    head = config.head
    yield from against_classes(head)
    if head.classes and head.hidden:
        yield "head.hidden is 0 there, where there are classes"
    if not head.classes and not head.hidden:
        yield NO_POOLER


HEAD = Together(
    ("architectures", *CLASS_SETTINGS, "pooler_output_size"),
    (*CLASS_FIELDS, "head.hidden"),
    _read_head,
    _write_head,
    _against_head,
)


class ViTConverter(Converter, name="vit", architecture=CLASSES, prefix="vit."):
    """Dosovitskiy et al. 2021: a class token, learned positions, pre-norm, biases everywhere.

    Their pooler, a map and tanh of the class token, is the hidden layer of our head; their class for classes has none.
    """

    family = ViTConfig
    fields = FieldTable(
        Field("image_size", "image_size", "side", default=224),
        Field("patch_size", "patch", "side", default=16),
        Field("num_channels", "channels", default=3),
        Field("hidden_size", "width"),
        Field("num_hidden_layers", "depth"),
        Field("num_attention_heads", "attention.heads", resolve=heads),
        Field("intermediate_size", "feed_forward.ff_width", resolve=ff_width),
        Field("hidden_act", "feed_forward.activation", words=ACTIVATIONS, default="gelu"),
        Field("layer_norm_eps", "norm.eps", "number", default=1e-12),
        Field("hidden_dropout_prob", "dropout", "number", default=0.0),
        Field("attention_probs_dropout_prob", "attention.dropout", "number", default=0.0),
        Only("qkv_bias", True, why="either all maps of an attention have biases in Weft, or none", written=True),
        Fixed("pool", "class"),
        Fixed("stem", (), why="patches are cut from the image itself there: stem is empty"),
        Fixed("qk_norm", False),
        *LAYER_NORM,
        *PLAIN_FEED_FORWARD,
        *PLAIN_ATTENTION,
        HEAD,
        StartOnly("zero_outputs", False),
        TrainingOnly("head.dropout"),
        TrainingOnly("feed_forward.dropout"),
        Only("pooler_act", "tanh", why="the hidden layer of a head ends in tanh in Weft"),
        Unread("initializer_range", "encoder_stride"),
    )

    def fitted(self, config: ModelConfig, names: Callable[[], Iterable[str]]) -> ViTConfig:
        """A trunk may come without its pooler; and where no class is named, the heads follow from the tensors."""
        assert isinstance(config, ViTConfig)
        if not config.head.hidden:
            return config
        there = set(names())
        if config.head.classes and "classifier.weight" in there:
            return config.override({"head.hidden": 0})
        pooled = any(name.endswith("pooler.dense.weight") for name in there)
        return config.override({"head": ImageHead(hidden=config.head.hidden if pooled else 0)})

    def architecture_of(self, config: ModelConfig) -> str:
        assert isinstance(config, ViTConfig)
        return CLASSES if config.head.classes else TRUNK

    def auto_class(self, config: ModelConfig) -> str:
        return "AutoModelForImageClassification" if self.architecture_of(config) == CLASSES else "AutoModel"

    def advice(self, config: ModelConfig) -> str:
        if self.why_not(config) == NO_POOLER:
            return "train it for classes: the head that it gets can be exported with it"
        return "train with ViT's own parts: --model vit-ti, made smaller by model.width, depth, attention.heads"

    def table_for(self, config: ModelConfig, names: Iterable[str]) -> WeightTable:
        names = list(names)
        whole = any(name.startswith(self.prefix) for name in names)
        new = any(".mlp.fc1." in name for name in names)
        return self.table(config, prefix=self.prefix if whole else "", layer=NEW if new else OLD)

    def table(self, config: ModelConfig, *, prefix: str, layer: dict[str, str] = OLD) -> WeightTable:
        assert isinstance(config, ViTConfig)
        embeddings = prefix + "embeddings."
        return WeightTable(
            Row(embeddings + "cls_token", "class_token", ones=(2, 0)),
            Row(embeddings + "position_embeddings", "positions", ones=(1, 0)),
            *pair(embeddings + "patch_embeddings.projection", "patches"),
            *(row for foreign, ours in layer.items() for row in pair(prefix + foreign, LAYER + ours)),
            *pair(prefix + "layernorm", "norm"),
            *_head_rows(config.head, prefix),
        )


def _head_rows(head: ImageHead, prefix: str) -> Iterator[Row | Ignored]:
    if head.hidden:
        yield from pair(prefix + "pooler.dense", "classes.1")
    else:  # kept by some files, read by nothing
        yield from (Ignored(f"{prefix}pooler.dense.{part}") for part in ("weight", "bias"))
    if head.classes:
        yield from pair("classifier", "classes.1")
