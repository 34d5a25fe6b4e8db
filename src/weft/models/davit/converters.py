"""How timm stores a DaViT: queries, keys and values of a block in one map, two blocks for each of our layers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from weft.errors import UnsupportedError
from weft.models.base import ModelConfig
from weft.models.davit.model import PRESETS, DaViTConfig, davit
from weft.models.field_table import Field, FieldTable, Together
from weft.models.gpt.converters import pair
from weft.models.hugging_face_config import HuggingFaceConfig
from weft.models.timm import TimmConverter
from weft.weights import Row, WeightTable

STAGE = "stages.{stage}."
LAYER = STAGE + "layers.{layer}."
# In timm's channel attention, softmax(keyᵀ·value)·query, the map called key gives what we call queries, value gives
# keys, and query gives values. Ours are named by what they do, as in the paper.
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


def _read_widths(args: HuggingFaceConfig) -> dict[str, Any]:
    """Widths and heads go together: we say how wide a head is, the same in every stage."""
    widths, heads = args.sizes("embed_dims"), args.sizes("num_heads")
    head_widths = {width / count for width, count in zip(widths, heads, strict=False)}
    if len(widths) != len(heads) or len(head_widths) != 1:
        given = f"{args.where}: num_heads = {heads} for embed_dims = {widths}"
        raise UnsupportedError(given, expected="heads of the same width in every stage")
    return {"widths": widths, "head_width": widths[0] // heads[0]}


def _write_widths(config: DaViTConfig) -> dict[str, Any]:
    heads = [width // config.head_width for width in config.widths]
    return {"embed_dims": list(config.widths), "num_heads": heads}


class DaViTConverter(TimmConverter):
    """The paper's sizes and the larger ones; those of Florence-2 have another attention of channels."""

    family = DaViTConfig
    architectures: ClassVar[dict[str, dict[str, Any]]] = {
        "davit_tiny": PRESETS["davit-tiny"],
        "davit_small": PRESETS["davit-small"],
        "davit_base": PRESETS["davit-base"],
        "davit_large": davit(192, (1, 1, 9, 1)),
        "davit_huge": davit(256, (1, 1, 9, 1)),
        "davit_giant": davit(384, (1, 1, 12, 3)),
    }
    arguments = FieldTable(
        Field("in_chans", "channels"),
        Field("depths", "depths", "sizes"),
        Together(("embed_dims", "num_heads"), ("widths", "head_width"), _read_widths, _write_widths),
        Field("window_size", "window"),
        Field("norm_eps", "norm.eps", "number"),
        Field("num_classes", "head.classes", "token"),
        Field("drop_rate", "head.dropout", "number"),
    )

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
