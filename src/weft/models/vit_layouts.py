"""How Hugging Face stores a ViT: the trunk with its pooler (`ViTModel`), or with a head for classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from weft.blocks.attention import SoftmaxConfig
from weft.blocks.feedforward import PlainConfig
from weft.blocks.norm import LayerNormConfig
from weft.models.base import ModelConfig
from weft.models.class_layouts import class_settings, read_classes
from weft.models.gpt_layouts import ACTIVATIONS, LAYER, THEIR_WORD, pair
from weft.models.layouts import Foreign, Layout
from weft.models.pictures import PictureHead
from weft.models.usual_parts import unusual_attention, unusual_feed_forward, unusual_norm
from weft.models.vit import ViTConfig
from weft.weights import Ignored, Row, WeightTable

TRUNK, CLASSES = "ViTModel", "ViTForImageClassification"
NO_POOLER = "a trunk has its pooler there: head.hidden"
# what stands in files, and what transformers 5 calls the same in memory, as some files have it too
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


class ViTLayout(Layout, name="vit", architecture=CLASSES, prefix="vit."):
    """Dosovitskiy et al. 2021: a class token, learned positions, pre-norm, biases everywhere.

    Their pooler, a map and tanh of the class token, is the hidden layer of our head; their class for classes has none.
    """

    def read_config(self, theirs: Foreign) -> ViTConfig:
        theirs.must_be("qkv_bias", True, why="either all maps of an attention have biases in Weft, or none")
        theirs.must_be("pooler_act", "tanh", why="the hidden layer of a head ends in tanh in Weft")
        width = theirs.size("hidden_size")
        return ViTConfig(
            image_size=theirs.side("image_size", 224),
            patch=theirs.side("patch_size", 16),
            channels=theirs.size("num_channels", 3),
            width=width,
            depth=theirs.size("num_hidden_layers"),
            attention=SoftmaxConfig(
                heads=theirs.size("num_attention_heads"), dropout=theirs.number("attention_probs_dropout_prob", 0.0)
            ),
            feed_forward=PlainConfig(
                ff_width=theirs.size("intermediate_size"), activation=theirs.word("hidden_act", ACTIVATIONS, "gelu")
            ),
            norm=LayerNormConfig(eps=theirs.number("layer_norm_eps", 1e-12)),
            qk_norm=False,
            zero_outputs=False,
            dropout=theirs.number("hidden_dropout_prob", 0.0),
            pool="class",
            head=_head(theirs, width),
        )

    def fitted(self, config: ModelConfig, names: Callable[[], Iterable[str]]) -> ViTConfig:
        """A trunk may come without its pooler; and where no class is named, the tensors say what there is."""
        assert isinstance(config, ViTConfig)
        if not config.head.hidden:
            return config
        there = set(names())
        if config.head.classes and "classifier.weight" in there:
            return config.override({"head.hidden": 0})
        pooled = any(name.endswith("pooler.dense.weight") for name in there)
        return config.override({"head": PictureHead(hidden=config.head.hidden if pooled else 0)})

    def architecture_of(self, config: ModelConfig) -> str:
        assert isinstance(config, ViTConfig)
        return CLASSES if config.head.classes else TRUNK

    def auto_class(self, config: ModelConfig) -> str:
        return "AutoModelForImageClassification" if self.architecture_of(config) == CLASSES else "AutoModel"

    def why_not(self, config: ModelConfig) -> str:
        if not isinstance(config, ViTConfig):
            return super().why_not(config)
        return "; ".join(reason for fact, reason in _in_the_way(config) if fact)

    def advice(self, config: ModelConfig) -> str:
        if self.why_not(config) == NO_POOLER:
            return "train it for classes: the head that it gets can be exported with it"
        return "train with ViT's own parts: --model vit-ti, made smaller by model.width, depth, attention.heads"

    def settings(self, config: ModelConfig) -> dict[str, Any]:
        assert isinstance(config, ViTConfig) and isinstance(config.attention, SoftmaxConfig)
        return {
            "image_size": config.image_size,
            "patch_size": config.patch,
            "num_channels": config.channels,
            "hidden_size": config.width,
            "num_hidden_layers": config.depth,
            "num_attention_heads": config.attention.sizes(config.width)[0],
            "intermediate_size": config.feed_forward.hidden(config.width),
            "hidden_act": THEIR_WORD[config.feed_forward.activation],
            "layer_norm_eps": config.norm.eps,
            "hidden_dropout_prob": config.dropout,
            "attention_probs_dropout_prob": config.attention.dropout,
            "qkv_bias": True,
            **(class_settings(config.head) if config.head.classes else {}),
            **({"pooler_output_size": config.head.hidden, "pooler_act": "tanh"} if config.head.hidden else {}),
        }

    def losses(self, config: ModelConfig) -> list[str]:
        assert isinstance(config, ViTConfig)
        parts = {"head.dropout": config.head.dropout, "feed_forward.dropout": config.feed_forward.dropout}
        return [f"{name} = {share} (used in training only)" for name, share in parts.items() if share]

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


def _head(theirs: Foreign, width: int) -> PictureHead:
    """What their class has on top; without a class, everything that there may be, and the tensors will say."""
    given = theirs.values.get("architectures")
    names = given if isinstance(given, list) else [given]
    pooler = theirs.size("pooler_output_size", width)
    if given is None or not names:
        return PictureHead(**read_classes(theirs, twins=True), hidden=pooler)
    kind = Foreign({"architectures": names[0]}, theirs.where).word("architectures", {TRUNK: TRUNK, CLASSES: CLASSES})
    return PictureHead(hidden=pooler) if kind == TRUNK else PictureHead(**read_classes(theirs, twins=True))


def _head_rows(head: PictureHead, prefix: str) -> Iterator[Row | Ignored]:
    if head.hidden:
        yield from pair(prefix + "pooler.dense", "classes.1")
    else:  # kept by some files, read by nothing
        yield from (Ignored(f"{prefix}pooler.dense.{part}") for part in ("weight", "bias"))
    if head.classes:
        yield from pair("classifier", "classes.1")


def _in_the_way(config: ViTConfig) -> Iterator[tuple[bool, str]]:
    """What a model may have that ViT's class cannot say, by the field that says it."""
    head = config.head
    yield config.pool != "class", f"pool is class there, not {config.pool}"
    yield bool(config.stem), "patches are cut from the picture itself there: stem is empty"
    yield config.qk_norm, "qk_norm is off there"
    yield from unusual_norm(config.norm)
    yield from unusual_feed_forward(config.feed_forward)
    yield from unusual_attention(config.attention, config.width)
    yield bool(head.classes and head.hidden), "head.hidden is 0 there, where there are classes"
    yield not head.classes and not head.hidden, NO_POOLER
