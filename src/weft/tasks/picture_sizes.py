"""Which model suits a set of pictures and a time; measured in docs/decisions/009-small-pictures.md."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from weft.cost import Cost, picture_cost
from weft.models import ModelConfig, PictureConfig, PictureHead

BATCH = 64
EPOCHS = 6  # readings for which there should be time at least
STEPS = 2400  # that a small set of pictures is worth, if it is not looked at more than MOST times for it
FEWEST, MOST = 30.0, 150.0  # readings of the pictures when there is time for them
LARGE = 64  # rows of a picture that a ResNet makes smaller at once


@dataclass(frozen=True)
class Room:
    """What a model is chosen for: rows and columns of the pictures, their channels, how many operations there are for
    one picture that is learned from once, and how many parameters the pictures can fill."""

    size: int
    channels: int
    flops: float
    parameters: float

    def halvings(self, rows: int) -> int:
        """How often a picture is halved until about so many rows are left."""
        return max(0, math.floor(math.log2(self.size / rows) + 0.25))


def readings(pictures: int, batch: int = BATCH) -> float:
    """How often so many pictures are worth being looked at."""
    return min(MOST, max(FEWEST, STEPS * batch / pictures))


def room_for(size: int, channels: int, pictures: int, flops: float) -> Room:
    """Room for so many pictures of this size and so many operations of training in all."""
    epochs = max(EPOCHS, min(MOST, STEPS * BATCH / pictures))
    return Room(size, channels, flops / (epochs * pictures), 2.0 * pictures * channels * size**2)


# -- sizes, from the smallest -----------------------------------------------------------------

Fields = dict[str, Any]
VIT = (  # first width of the stem, width, depth, rows of places that are read
    (32, 64, 2, 4),
    (32, 96, 2, 4),
    (32, 128, 2, 4),
    (48, 192, 3, 4),
    (48, 192, 6, 8),
    (64, 256, 8, 8),
)
STAGES = (16, 24, 32, 48, 64, 96)  # width of the first stage


def _vit(room: Room, rung: int) -> Fields:
    stem, width, depth, rows = VIT[rung]
    halvings = room.halvings(rows)
    return {
        "image_size": room.size,
        "patch": 2**halvings,
        "stem": tuple(stem * 2 ** min(n, 2) for n in range(halvings)),
        "width": width,
        "depth": depth,
        "attention.heads": width // 32,
    }


def _davit(room: Room, rung: int) -> Fields:
    first = max(32, 32 * round(STAGES[rung] / 32))  # channels come in groups of 32
    stride = 2 ** max(0, room.halvings(8) - 1)
    return {"widths": (first, 2 * first), "depths": (1, 1 + rung // 2), "strides": (stride, 2)}


def _convnext(room: Room, rung: int) -> Fields:
    width, halvings = STAGES[rung], room.halvings(4)
    stages = min(3, 1 + halvings)
    patch = 2 ** max(0, halvings + 1 - stages)
    return {"patch": patch, "widths": tuple(width * 2**n for n in range(stages)), "depths": (2,) * stages}


def _resnet(room: Room, rung: int) -> Fields:
    width = 16 * max(1, STAGES[rung] // 16)
    stem = "large" if room.size >= LARGE else "small"
    stages = max(1, min(4, room.halvings(7) + (-1 if stem == "large" else 1)))
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
        cost = _cost(family, fields, room)
        if cost.flops > room.flops or cost.parameters > room.parameters:
            break
        chosen = fields
    return chosen


def _cost(family: str, fields: Fields, room: Room) -> Cost:
    config = ModelConfig.pick({"kind": family}).override({**fields, "channels": room.channels})
    assert isinstance(config, PictureConfig)
    return picture_cost(config.override({"head": PictureHead(classes=10)}), batch=1, size=room.size)


LEARNING: dict[str, Any] = {  # how fast a fresh model learns
    "optimizer.learning_rate": 0.02,
    "optimizer.embedding_rate": 0.01,
    "optimizer.head_rate": 0.01,
    "warmup": 0.05,
    "decay": 0.95,
}
