"""Images as they were found, before they are brought into one form: files to decode or an array, and their labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from weft.errors import DataError

Part = Literal["train", "validation", "test"]
PARTS: dict[str, Part] = {  # how people call them
    "train": "train",
    "training": "train",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "dev": "validation",
    "test": "test",
    "testing": "test",
    "t10k": "test",
}


@dataclass(frozen=True)
class Found:
    """Labelled images from one place: either `files`, or an `array` (N, C, Y, X) of 8 bits."""

    where: str
    labels: list[str]
    names: list[str]
    files: list[Path] | None = None
    lines: list[int] | None = None  # of the table that names the files
    array: NDArray[np.uint8] | None = None

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class FoundParts:
    """What one path holds, how its classes were told, and what is to be said about it."""

    parts: dict[Part, Found]
    why: str
    notes: tuple[str, ...] = ()


def labelled_array(pixels: NDArray[np.uint8], labels: list[str], where: str, prefix: str) -> Found:
    """Pixels and labels that must be as many; the names count from 0."""
    if len(labels) != len(pixels):
        given = f"{where} has {len(pixels)} images and {len(labels)} labels"
        raise DataError(given, expected="one label for each image")
    return Found(where, labels, [f"{prefix} {place}" for place in range(len(labels))], array=pixels)
