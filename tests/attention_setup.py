"""Attention made by hand, of every shape that a model can have: for the page, which needs no model."""

from __future__ import annotations

import functools

import numpy as np

from weft.analysis import view
from weft.analysis.view import AttentionView, Side
from weft.blocks.attention.base import Grid

MapView = functools.partial(view.MapView, rows="sums to one")
HOSTILE = (
    "</script><img src=x onerror=window.broken=1>",
    "<!--",
    "&amp;&lt;",
    "\u2028",
    "\"'`",
    "",
    "   ",
    "\n",
    "🙂",
    "a" * 300,
    "\u202eabc",
    "]]>",
)


def weights(heads: int, rows: int, columns: int | None = None, *, causal: bool = False, seed: int = 0) -> np.ndarray:
    """Rows that add up to 1, some sharp and some flat."""
    chance, columns = np.random.default_rng(seed), columns or rows
    scores = chance.normal(size=(heads, rows, columns)).astype(np.float32) * np.linspace(0.2, 3, heads)[:, None, None]
    scores = np.where(np.tri(rows, columns, dtype=bool), scores, -np.inf) if causal else scores
    found = np.exp(scores - scores.max(-1, keepdims=True))
    return (found / found.sum(-1, keepdims=True)).astype(np.float32)


def text(depth: int = 3, heads: int = 4) -> AttentionView:
    """Twelve tokens that look back."""
    side = Side(("<s>", " The", " cat", " sat", " on", " the", " mat", ",", " and", " slept", ".", "\n"))
    maps = [weights(heads, 12, causal=True, seed=n) for n in range(depth)]
    shown = tuple(MapView(f"layers.{n}.attention", "layers", found, side, side) for n, found in enumerate(maps))
    mean = np.eye(12, dtype=np.float32)
    for found in maps:
        mean = (found.mean(0) + np.eye(12, dtype=np.float32)) / 2 @ mean
    return AttentionView("The cat sat", "gpt", shown, {"layers": mean}, None, {"next token": "“.”, 41 %"})


def pairs() -> AttentionView:
    """Nine tokens written from twelve read: three parts."""
    wrote, read = Side(tuple("abcdefghi")), Side(tuple("ABCDEFGHIJKL"))
    maps = [MapView(f"encoder.{n}", "encoder", weights(2, 12, seed=n), read, read) for n in range(2)]
    for n in range(2):
        maps.append(MapView(f"decoder.{n}", "decoder", weights(2, 9, causal=True, seed=n), wrote, wrote))
        maps.append(MapView(f"decoder.{n}.cross", "decoder → encoder", weights(2, 9, 12, seed=n), wrote, read))
    return AttentionView("A pair", "transformer", tuple(maps))


def image(rows: int = 14) -> AttentionView:
    """A class token and the places of an image."""
    grid = Grid(rows, rows)
    places = tuple(f"row {y + 1}, column {x + 1}" for y in range(rows) for x in range(rows))
    side = Side(("class", *places), grid)
    maps = [MapView(f"layers.{n}.attention", "layers", weights(3, rows**2 + 1, seed=n), side, side) for n in range(2)]
    pixels = np.random.default_rng(0).integers(0, 256, (56, 56, 3), dtype=np.uint8)
    return AttentionView("a ball.png", "vit", tuple(maps), {}, pixels, {"answer": "ball, 93 %"})


def stages() -> AttentionView:
    """Places of an image that get fewer with depth, and channels beside them."""
    maps = []
    for n, size in enumerate((8, 4)):
        places = Side(tuple(f"row {y + 1}, column {x + 1}" for y in range(size) for x in range(size)), Grid(size, size))
        channels = Side(tuple(f"channel {c + 1}" for c in range(16)))
        maps.append(MapView(f"stages.{n}.places", "places", weights(2 + n, size**2, seed=n), places, places))
        maps.append(MapView(f"stages.{n}.channels", "channels", weights(2, 16, seed=n), channels, channels))
    return AttentionView("digit", "davit", tuple(maps), {}, np.full((8, 8, 1), 90, np.uint8))


def hostile() -> AttentionView:
    """Words that would like to be code."""
    side = Side(HOSTILE)
    bad = "</script><img src=x onerror=window.broken=2>"
    maps = tuple(MapView(bad, part, weights(2, len(HOSTILE)), side, side) for part in (bad, 'b"'))
    return AttentionView(bad, bad, maps, {'b"': maps[0].weights[0]}, None, {bad: bad})


def long(tokens: int = 512, depth: int = 12, heads: int = 12) -> AttentionView:
    """As much as a base model has to say about its longest input."""
    side = Side(tuple(f" word{n}" for n in range(tokens)))
    once = weights(heads, tokens, causal=True)
    maps = [MapView(f"layers.{n}.attention", "layers", np.roll(once, n, axis=0), side, side) for n in range(depth)]
    return AttentionView("A long text", "gpt", tuple(maps), {"layers": once.mean(0)})


def chapter() -> AttentionView:
    """Long enough for a matrix and lists that are scrolled."""
    return long(tokens=120, depth=2, heads=3)
