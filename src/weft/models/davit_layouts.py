"""How timm stores a DaViT: queries, keys and values of a block in one map, two blocks for each of our layers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from weft.errors import UnsupportedError
from weft.models import davit
from weft.models.base import ModelConfig
from weft.models.gpt_layouts import pair
from weft.models.layouts import Foreign
from weft.models.timm_layouts import TimmLayout
from weft.weights import Row, WeightTable

STAGE = "stages.{stage}."
LAYER = STAGE + "layers.{layer}."
# In timm's channel attention, softmax(keyᵀ·value)·query, the map called key is what asks, value what answers, and query
# what is received. Ours are named by what they do, as in the paper.
PLACES, CHANNELS = ("query", "key", "value"), ("value", "query", "key")
PARTS = {
    "cpe1.proj": "attention_positions.map",
    "norm1": "attention_residual.norm",
    "attn.proj": "attention.output",
    "cpe2.proj": "feed_forward_positions.map",
    "norm2": "feed_forward_residual.norm",
    "mlp.fc1": "feed_forward.up",
    "mlp.fc2": "feed_forward.down",
}


class DaViTLayout(TimmLayout):
    """The paper's sizes and the larger ones; those of Florence-2 have another attention of channels."""

    family = "davit"
    architectures: ClassVar[dict[str, dict[str, Any]]] = {
        "davit_tiny": davit.PRESETS["davit-tiny"],
        "davit_small": davit.PRESETS["davit-small"],
        "davit_base": davit.PRESETS["davit-base"],
        "davit_large": davit.davit(192, (1, 1, 9, 1)),
        "davit_huge": davit.davit(256, (1, 1, 9, 1)),
        "davit_giant": davit.davit(384, (1, 1, 12, 3)),
    }
    arguments: ClassVar[dict[str, str]] = {
        "in_chans": "channels",
        "depths": "depths",
        "embed_dims": "widths",
        "num_heads": "head_width",
        "window_size": "window",
        "norm_eps": "norm.eps",
        "num_classes": "head.classes",
        "drop_rate": "head.dropout",
    }

    def _changes(self, args: Foreign) -> dict[str, Any]:
        """Widths and heads go together: we say how wide a head is, the same in every stage."""
        if "embed_dims" not in args.values and "num_heads" not in args.values:
            return super()._changes(args)
        widths, heads = args.sizes("embed_dims"), args.sizes("num_heads")
        head_widths = {width / count for width, count in zip(widths, heads, strict=False)}
        if len(widths) != len(heads) or len(head_widths) != 1:
            given = f"{args.where}: num_heads = {heads} for embed_dims = {widths}"
            raise UnsupportedError(given, expected="heads of the same width in every stage")
        others = {word: value for word, value in args.values.items() if word not in ("embed_dims", "num_heads")}
        sizes = {"widths": widths, "head_width": widths[0] // heads[0]}
        return super()._changes(Foreign(others, args.where)) | sizes

    def table(self, config: ModelConfig, *, prefix: str = "") -> WeightTable:
        stage = prefix + STAGE
        block = stage + "blocks.{layer}."
        return WeightTable(
            *pair(prefix + "stem.conv", "stem.map"),
            *pair(prefix + "stem.norm", "stem.norm"),
            *pair(stage + "downsample.norm", STAGE + "shrink.norm"),
            *pair(stage + "downsample.conv", STAGE + "shrink.map"),
            *_half(block + "0.", LAYER + "spatial.", PLACES),
            *_half(block + "1.", LAYER + "channel.", CHANNELS),
            *pair(prefix + "head.norm", "norm"),
            *pair(prefix + "head.fc", "classes.1"),
        )


def _half(theirs: str, ours: str, maps: tuple[str, ...]) -> Iterator[Row]:
    """One block of theirs, which is half a layer of ours."""
    for name, our_name in PARTS.items():
        yield from pair(theirs + name, ours + our_name)
    yield from pair(theirs + "attn.qkv", tuple(f"{ours}attention.{name}" for name in maps))
