"""What is shown of attention for one input: the weights of every layer, and what their rows and columns stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float, UInt8

from weft.blocks.attention.base import Grid, Rows
from weft.errors import ConfigError
from weft.pages import table


@dataclass(frozen=True)
class Side:
    """What stands along one side of a map: tokens, places of an image, or channels.

    labels  one for each row or column
    grid    the last `grid.places` of the labels are places of the image, row by row; None: none is
    """

    labels: tuple[str, ...]
    grid: Grid | None = None


@dataclass(frozen=True, eq=False)
class MapView:
    """The weights of one attention layer.

    name       of the module: "layers.3.attention"
    part       which stack it belongs to, in a word or two: "layers", "encoder", "decoder", "decoder → encoder",
               "channels" …; the maps of a part are its depth, in order
    weights    at least 0; a row that may look at nothing is all 0
    asking     what the rows stand for
    answering  what the columns stand for
    rows       what the attention kind promises of every other row
    """

    name: str
    part: str
    weights: Float[np.ndarray, "H T S"]
    asking: Side
    answering: Side
    rows: Rows = "nothing"

    @property
    def are_shares(self) -> bool:
        """Whether the weights of a row are shares of a whole, so that percentages and entropy have a meaning."""
        return self.rows != "nothing"


@dataclass(frozen=True, eq=False)
class AttentionView:
    """Everything that is shown for one input.

    title     the input in a few words
    family    the kind of model
    maps      of every layer, in the order in which they run
    rollouts  by part: how much of each input is in each state after the last layer of that part (Abnar and Zuidema
              2020); parts for which it has no meaning are left out
    image   what was looked at, if it was an image
    facts     short lines about the input and the answer, by name: {"answer": "cat, 93 %"}
    """

    title: str
    family: str
    maps: tuple[MapView, ...]
    rollouts: Mapping[str, Float[np.ndarray, "T S"]] = field(default_factory=dict)
    image: UInt8[np.ndarray, "Y X C"] | None = None
    facts: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        heads = sum(len(one.weights) for one in self.maps)
        return f"AttentionView({self.family}, {self.title!r}, {len(self.maps)} maps, {heads} heads)"

    def _repr_html_(self) -> str:
        """A small table for notebooks: what there is of each part."""
        rows = [(name, value) for name, value in {"input": self.title, "model": self.family, **self.facts}.items()]
        for part, maps in self.parts.items():
            shapes = sorted({f"{one.weights.shape[1]} × {one.weights.shape[2]}" for one in maps})
            heads = sum(len(one.weights) for one in maps)
            rows.append((part, f"{len(maps)} layers, {heads} heads, {', '.join(shapes)}"))
        return table(("", "attention"), rows)

    @property
    def parts(self) -> dict[str, list[MapView]]:
        """The maps of each part, in their order."""
        found: dict[str, list[MapView]] = {}
        for one in self.maps:
            found.setdefault(one.part, []).append(one)
        return found

    def only(self, layer: int | None = None, head: int | None = None) -> AttentionView:
        """One layer of each part, one head of each layer, or both, as far as a part has them; numbers from 1. Rollouts
        are of all layers and heads, and so are left out."""
        if layer is None and head is None:
            return self
        deepest = max((len(maps) for maps in self.parts.values()), default=0)
        most = max((len(one.weights) for one in self.maps), default=0)
        for name, number, last in (("layer", layer, deepest), ("head", head, most)):
            if number is not None and not 1 <= number <= last:
                raise ConfigError(f"{name} {number}", expected=f"from 1 to {last}")
        chosen = [
            one
            for maps in self.parts.values()
            for place, one in enumerate(maps, 1)
            if layer in (None, place) and (head is None or head <= len(one.weights))
        ]
        if head is not None:
            chosen = [replace(one, weights=one.weights[head - 1 : head]) for one in chosen]
        if not chosen:
            raise ConfigError(f"head {head} of layer {layer}", expected="a layer with so many heads")
        shown = [f"{name} {number}" for name, number in (("layer", layer), ("head", head)) if number is not None]
        return replace(
            self, maps=tuple(chosen), rollouts={}, facts={**self.facts, "shown": f"{', '.join(shown)} alone"}
        )
