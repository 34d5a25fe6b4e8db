"""What the attention page carries: weights in one byte each, small copies of all heads, labels, the image."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8

from weft.analysis.view import AttentionView, Side

SMALL = 40  # cells along a side of a small copy
LONG = 64  # columns above which a small copy shows weights beside the largest of their row
PIXELS = 768  # along a side of the image; of a larger one, every second, third … pixel is taken


def view_data(view: AttentionView) -> dict[str, Any]:
    """Labels and shapes, as plain values; sides that many maps share are told once."""
    sides: list[Side] = []

    def number(side: Side) -> int:
        if side not in sides:
            sides.append(side)
        return sides.index(side)

    maps = [
        {
            "name": m.name,
            "part": m.part,
            "heads": m.weights.shape[0],
            "asking": number(m.asking),
            "answering": number(m.answering),
            "shares": m.are_shares,
            "small": [min(SMALL, size) for size in m.weights.shape[1:]],
        }
        for m in view.maps
    ]
    grids = [None if s.grid is None else [s.grid.rows, s.grid.columns] for s in sides]
    shape = None if view.image is None else list(_fewer(view.image).shape[:2])
    return {
        "title": view.title,
        "maps": maps,
        "sides": [{"labels": list(s.labels), "grid": g} for s, g in zip(sides, grids, strict=True)],
        "rollouts": list(view.rollouts),
        "image": shape,
    }


def weights_data(view: AttentionView) -> dict[str, str]:
    """By name: `map N` and `rollout PART` as told in `in_bytes`, `small` the small copies of all maps."""
    found = {f"map {n}": _packed(in_bytes(m.weights)) for n, m in enumerate(view.maps)}
    found |= {f"rollout {part}": _packed(in_bytes(weights[None])) for part, weights in view.rollouts.items()}
    found["small"] = _packed(b"".join(small_copy(m.weights, shares=m.are_shares).tobytes() for m in view.maps))
    return found


def in_bytes(weights: Float[np.ndarray, "H T S"]) -> bytes:
    """The largest weight of each row as float32, then every weight as a byte: 255 is the largest of its row.

    So a row that spreads over a thousand tokens is told as finely as one that looks at two."""
    largest = weights.max(axis=-1, keepdims=True, initial=0).astype(np.float32)
    shares = np.divide(weights, largest, out=np.zeros(weights.shape, np.float32), where=largest > 0)
    return largest.astype("<f4").tobytes() + np.rint(shares * 255).astype(np.uint8).tobytes()


def small_copy(weights: Float[np.ndarray, "H T S"], *, shares: bool = True) -> UInt8[np.ndarray, "H t s"]:
    """At most SMALL × SMALL cells of each head, each the largest of what it stands for."""
    if weights.shape[2] > LONG or not shares:
        largest = weights.max(axis=-1, keepdims=True, initial=0)
        weights = np.divide(weights, largest, out=np.zeros_like(weights), where=largest > 0)
    for axis in (1, 2):
        size = weights.shape[axis]
        if size > SMALL:
            weights = np.maximum.reduceat(weights, np.arange(SMALL) * size // SMALL, axis=axis)
    return np.rint(weights * 255).astype(np.uint8)


def image_data(image: UInt8[np.ndarray, "Y X C"]) -> str:
    """Red, green and blue of each pixel; one channel is grey."""
    few = _fewer(image)
    return _packed(np.ascontiguousarray(np.repeat(few, 3, axis=2) if few.shape[2] < 3 else few[..., :3]).tobytes())


def _fewer(image: UInt8[np.ndarray, "Y X C"]) -> UInt8[np.ndarray, "Y X C"]:
    step = -(-max(image.shape[:2]) // PIXELS)
    return image[::step, ::step]


def _packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 6)).decode("ascii")
