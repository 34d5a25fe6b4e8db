"""Tiny images for tests, and the words that train on them in a second."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from table_setup import sets

SIZES = [
    "model.width=16", "model.depth=1", "model.attention.heads=2", "model.stem=8", "model.patch=4", "training.batch=16",
    "training.micro_batch=10", "training.optimizer.kind=adamw", "training.optimizer.learning_rate=0.01",
    "training.warmup=0.1", "training.decay=0.5", "objective.augment.mixup=0",
]  # fmt: skip


def bars(count: int = 60, seed: int = 0, size: int = 12) -> tuple[np.ndarray, list[str]]:
    """Grey images of a bright bar that lies or stands, by turns, on noise; (N, size, size) and the classes."""
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 60, (count, size, size))
    for n, place in enumerate(rng.integers(2, size - 4, count)):
        if n % 2:
            pixels[n, place : place + 2, 1:-1] = 230
        else:
            pixels[n, 1:-1, place : place + 2] = 230
    return pixels.astype(np.uint8), ["lying" if n % 2 else "standing" for n in range(count)]


def write_folder(folder: Path, count: int = 60, seed: int = 0, size: int = 12) -> Path:
    """A folder with a sub-folder of .png files for each class."""
    from PIL import Image

    for n, (image, label) in enumerate(zip(*bars(count, seed, size), strict=True)):
        (folder / label).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / label / f"{n:03}.png")
    return folder


def image_words(data: str, out: object, steps: int, *more: str) -> list[str]:
    """`weft train classify` on images, with the tiniest ViT."""
    words = ["train", "classify", data, "--steps", str(steps), "--out", str(out), "--threads", "1"]
    return [*words, *sets(*SIZES), *more]
