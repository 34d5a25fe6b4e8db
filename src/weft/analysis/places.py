"""Where an attention stands in its model, as people count: from 1, and with a word for the stack it belongs to."""

from __future__ import annotations

import re
from dataclasses import dataclass

PARTS = {"encoder": "encoder", "decoder": "decoder", "cross": "decoder → encoder"}


@dataclass(frozen=True)
class Place:
    """`part`: the stack, empty where there is only one; `number`: the layer in it, from 1."""

    part: str
    number: int

    @property
    def layer(self) -> str:
        """ "layer 3", "encoder, layer 3"."""
        return f"{self.part}, layer {self.number}" if self.part else f"layer {self.number}"

    def head(self, number: int) -> str:
        """ "head 3.5": the fifth of the third layer."""
        told = f"head {self.number}.{number}"
        return f"{self.part}, {told}" if self.part else told


def place_of(name: str, *, looks_elsewhere: bool = False) -> Place:
    """From the name of its module: "decoder.layers.2.cross_attention" is the third of the decoder's looks at what was
    read. `looks_elsewhere`: it does so under a plain name."""
    words = name.split(".")
    numbers = [int(word) for word in words if word.isdigit()]
    part = ""
    if words[-1] == "cross_attention" or looks_elsewhere:
        part = PARTS["cross"]
    elif words[0] in PARTS:
        part = PARTS[words[0]]
    elif stage := re.match(r"stages\.(\d+)\..*\b(spatial|channel)\b", name):
        part = f"stage {int(stage[1]) + 1}, {'windows' if stage[2] == 'spatial' else 'channels'}"
    return Place(part, numbers[-1] + 1 if numbers else 1)
