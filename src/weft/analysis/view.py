"""What is shown of attention for one input: the weights of every layer, and what their rows and columns stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, UInt8

from weft.blocks.attention.base import Grid


@dataclass(frozen=True)
class Side:
    """What stands along one side of a map: tokens, places of a picture, or channels.

    labels  one for each row or column
    grid    the last `grid.places` of the labels are places of the picture, row by row; None: none is
    """

    labels: tuple[str, ...]
    grid: Grid | None = None


@dataclass(frozen=True, eq=False)
class MapView:
    """The weights of one attention layer.

    name       of the module: "layers.3.attention"
    part       which stack it belongs to, in a word or two: "layers", "encoder", "decoder", "decoder → encoder",
               "channels" …; the maps of a part are its depth, in order
    weights    each row adds up to 1, or to 0 where nothing may be looked at
    asking     what the rows stand for
    answering  what the columns stand for
    """

    name: str
    part: str
    weights: Float[np.ndarray, "H T S"]
    asking: Side
    answering: Side


@dataclass(frozen=True, eq=False)
class AttentionView:
    """Everything that is shown for one input.

    title     the input in a few words
    family    the kind of model
    maps      of every layer, in the order in which they run
    rollouts  by part: how much of each input is in each state after the last layer of that part (Abnar and Zuidema
              2020); parts for which it has no meaning are left out
    picture   what was looked at, if it was a picture
    facts     short lines about the input and the answer, by name: {"answer": "cat, 93 %"}
    """

    title: str
    family: str
    maps: tuple[MapView, ...]
    rollouts: Mapping[str, Float[np.ndarray, "T S"]] = field(default_factory=dict)
    picture: UInt8[np.ndarray, "Y X C"] | None = None
    facts: Mapping[str, str] = field(default_factory=dict)
