"""Which model suits a set of pictures and a time; measured in docs/decisions/009-small-pictures.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

BATCH = 64


@dataclass(frozen=True)
class Room:
    """What a model is chosen for: rows and columns of the pictures, their channels, how many there are, and minutes."""

    size: int
    channels: int
    pictures: int
    minutes: float | None

    @property
    def halvings(self) -> int:
        """How often the pictures are halved before they are read: until 7 rows or fewer are left, but 4 at least."""
        times = 0
        while self.size / 2 ** (times + 1) >= 4 and times < 5:
            times += 1
        return times


def _vit(room: Room) -> dict[str, Any]:
    widths = tuple(16 * 2**n for n in range(room.halvings))
    return {
        "image_size": room.size,
        "patch": 2 ** len(widths),
        "stem": widths,
        "width": 96,
        "depth": 4,
        "attention.heads": 3,
    }


def _stages(room: Room) -> dict[str, Any]:
    return {}


FIELDS: dict[str, Callable[[Room], dict[str, Any]]] = {
    "vit": _vit,
    "davit": _stages,
    "convnext": _stages,
    "resnet": _stages,
}


def picture_fields(family: str, room: Room) -> dict[str, Any]:
    """The fields of a model that is named by its family alone."""
    return FIELDS[family](room)


def learning(room: Room) -> dict[str, Any]:
    """How fast a fresh model learns."""
    rates = {"learning_rate": 0.02, "embedding_rate": 0.02, "head_rate": 0.01}
    return {f"optimizer.{name}": rate for name, rate in rates.items()} | {"warmup": 0.05, "decay": 0.95}
