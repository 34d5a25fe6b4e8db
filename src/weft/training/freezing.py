"""Which parts of a model do not learn."""

from __future__ import annotations

import re
from typing import Literal

from torch import nn

from weft.errors import ConfigError

Frozen = int | Literal["embeddings"] | None
EMBEDDING = re.compile(r"(source_)?tokens\.|segments\.|((en|de)coder\.)?position\.")
PATCHES = re.compile(r"stem\.|patches\.|patches_norm\.|(positions|class_token)$")  # the same for pictures
LAYER = re.compile(r"(?:(?:en|de)coder\.|stages\.(?P<stage>\d+)\.)?layers\.(?P<layer>\d+)\.")
BEFORE = re.compile(r"stages\.(?P<stage>\d+)\.(halving|shrink)\.")  # what leads into a stage goes with its first layer


def freeze(model: nn.Module, what: Frozen) -> None:
    """Nothing (None), what makes vectors of the input ("embeddings"), or that and the first n layers.

    These are the tables of tokens, segments and positions, or the map of patches with its stem. Layers are counted
    through all stages of a model of pictures, and in an encoder and a decoder each from the first.
    """
    if what is None:
        return
    count = 0 if what == "embeddings" else what
    layers = _layers(model)
    most = len(set(layers.values()))
    if count > most:
        raise ConfigError(f"freeze = {count}", expected=f"at most {most}, the layers of this model")
    for name, p in model.named_parameters():
        if EMBEDDING.match(name) or PATCHES.match(name) or layers.get(name, count) < count:
            p.requires_grad_(False)
    if not any(p.requires_grad for p in model.parameters()):
        raise ConfigError(f"freeze = {what!r} leaves nothing to learn", expected="fewer frozen layers")


def _layers(model: nn.Module) -> dict[str, int]:
    """The parameters that belong to a layer, and its number, counted from 0 through all stages."""
    places = {}
    for name, _ in model.named_parameters():
        if match := LAYER.match(name):
            places[name] = (int(match["stage"] or 0), int(match["layer"]))
        elif match := BEFORE.match(name):
            places[name] = (int(match["stage"]), 0)
    order = {place: number for number, place in enumerate(sorted(set(places.values())))}
    return {name: order[place] for name, place in places.items()}
