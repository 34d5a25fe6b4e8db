"""Which model suits a set of pictures and a time; measured in docs/decisions/009-small-pictures.md."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from weft.cost import picture_cost
from weft.models import ModelConfig, PictureConfig, PictureHead

BATCH = 64
EPOCHS = 10  # readings for which there should be time
ROWS = 8  # of places that a Transformer reads, at most
LEAST = 4  # and at least
LARGE = 64  # rows of a picture that a ResNet makes smaller at once


@dataclass(frozen=True)
class Room:
    """What a model is chosen for: rows and columns of the pictures, their channels, and how many operations there are
    for one picture that is learned from once."""

    size: int
    channels: int
    flops: float

    @property
    def halvings(self) -> int:
        """How often a picture is halved before a Transformer reads its places: until few rows are left, but not too
        few."""
        times = 0
        while self.left(times) > ROWS or (times == 0 and self.left(1) >= LEAST):
            times += 1
        return times

    def left(self, halvings: int) -> int:
        """Rows that are left then."""
        return math.ceil(self.size / 2**halvings)


def room_for(size: int, channels: int, pictures: int, flops: float) -> Room:
    """Room for so many pictures of this size and so many operations of training in all."""
    return Room(size, channels, flops / (EPOCHS * pictures))


# -- sizes, from the smallest -----------------------------------------------------------------

Fields = dict[str, Any]
VIT = ((16, 64, 2), (32, 64, 2), (32, 96, 4), (48, 128, 6), (64, 192, 8), (64, 256, 10))  # stem, width, depth
STAGES = (16, 24, 32, 48, 64, 96)  # width of the first stage


def _vit(room: Room, rung: int) -> Fields:
    stem, width, depth = VIT[rung]
    return {
        "image_size": room.size,
        "patch": 2**room.halvings,
        "stem": tuple(stem * 2 ** min(n, 2) for n in range(room.halvings)),
        "width": width,
        "depth": depth,
        "attention.heads": width // 32,
    }


def _davit(room: Room, rung: int) -> Fields:
    first = max(32, 32 * round(STAGES[rung] / 32))  # channels come in groups of 32
    stride = max(1, 2 ** (room.halvings - 1))
    return {"widths": (first, 2 * first), "depths": (1, 1 + rung // 2), "strides": (stride, 2)}


def _convnext(room: Room, rung: int) -> Fields:
    width = STAGES[rung]
    patch = max(1, 2 ** (room.halvings - 1))
    stages = 3 if room.size // patch >= 4 * LEAST - 2 else 2
    return {"patch": patch, "widths": tuple(width * 2**n for n in range(stages)), "depths": (2,) * stages}


def _resnet(room: Room, rung: int) -> Fields:
    width = 16 * max(1, STAGES[rung] // 16)
    stem = "large" if room.size >= LARGE else "small"
    stages = max(1, min(4, room.halvings + (-1 if stem == "large" else 1)))
    return {"stem": stem, "widths": tuple(width * 2**n for n in range(stages)), "depths": (1 + rung // 3,) * stages}


FIELDS: dict[str, Callable[[Room, int], Fields]] = {
    "vit": _vit,
    "davit": _davit,
    "convnext": _convnext,
    "resnet": _resnet,
}


def picture_fields(family: str, room: Room) -> Fields:
    """The fields of a model that is named by its family alone: the largest size for which there is room."""
    chosen = FIELDS[family](room, 0)
    for rung in range(1, len(STAGES)):
        fields = FIELDS[family](room, rung)
        if _flops(family, fields, room) > room.flops:
            break
        chosen = fields
    return chosen


def _flops(family: str, fields: Fields, room: Room) -> float:
    config = ModelConfig.pick({"kind": family}).override({**fields, "channels": room.channels})
    assert isinstance(config, PictureConfig)
    return picture_cost(config.override({"head": PictureHead(classes=10)}), batch=1, size=room.size).flops


LEARNING: dict[str, Any] = {  # how fast a fresh model learns
    "optimizer.learning_rate": 0.02,
    "optimizer.embedding_rate": 0.01,
    "optimizer.head_rate": 0.01,
    "warmup": 0.05,
    "decay": 0.95,
}
