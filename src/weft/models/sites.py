"""The layers of a model with what each sees, its attentions with what the rows and columns of their maps are, and how
both are counted for people: from 1, with a word for the stack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from torch import nn

from weft.blocks.attention import Attention
from weft.blocks.attention.additive import AdditiveAttention
from weft.blocks.sight import Sees, Sight
from weft.errors import ConfigError, UnsupportedError

Rows = Literal["text", "source", "written", "next", "source and written", "places"]
"""What the rows or columns of a map are: the tokens of the text that is read; of a model that writes one text from
another, those of the source, those that are written already, or the ones that are written next, or source and written
in one table; the places of an image."""

ENCODER, DECODER, ACROSS = "encoder", "decoder", "decoder → encoder"


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


@dataclass(frozen=True)
class AttentionSite:
    """One attention of a model.

    name         of its module
    place        the stack and the number of the layer, from 1
    asking       what the rows of its map are: the queries
    answering    what the columns are: the keys
    grid         on which of the model's grids of places (`ImageModel.place_grids`) it runs
    class_token  whether a token that has no place in the image comes before the places
    rollout      whether the attentions of its part alone carry information between tokens, so that the product of their
                 maps says how much of each input is in each state (Abnar and Zuidema 2020)
    """

    name: str
    place: Place
    asking: Rows
    answering: Rows
    grid: int = 0
    class_token: bool = False
    rollout: bool = False

    @property
    def reads_itself(self) -> bool:
        """Whether queries and keys are the same tokens (self-attention)."""
        return self.asking == self.answering


@dataclass(frozen=True, eq=False)
class ReachLayer:
    """A layer and what it sees; `memory`: which layer of the stack before it reads (−1: the last)."""

    name: str
    module: nn.Module
    sees: tuple[Sight, ...]
    memory: int = -1


@dataclass(frozen=True, eq=False)
class ReachStack:
    """Layers one after the other. `turned`: their inputs come in from the last to the first. `note`: a remark
    for the reader."""

    layers: Sequence[ReachLayer]
    turned: bool = False
    note: str = ""


def attentions(model: nn.Module) -> dict[str, nn.Module]:
    """All attention modules of a model, by name."""
    return {name: module for name, module in model.named_modules() if isinstance(module, Attention | AdditiveAttention)}


def sites_in(
    model: nn.Module, layers: str, part: str = "", rows: Rows = "text", *, class_token: bool = False
) -> list[AttentionSite]:
    """One for each attention in the list of layers of this name, each of which is self-attention."""
    inside = [name for name in attentions(model) if name.startswith(f"{layers}.")]
    numbers = [int(name.removeprefix(f"{layers}.").split(".")[0]) for name in inside]
    return [
        AttentionSite(name, Place(part, number + 1), rows, rows, class_token=class_token, rollout=True)
        for name, number in zip(inside, numbers, strict=True)
    ]


def seeing(name: str, layer: nn.Module, memory: int = -1) -> ReachLayer:
    """A `ReachLayer` of a layer with a method `sees`."""
    if not isinstance(layer, Sees):
        raise UnsupportedError(
            f"the reach of a {type(layer).__name__}", expected="a layer that says what it sees (weft.blocks.sight)"
        )
    return ReachLayer(name, layer, layer.sees(), memory)


def no_part(model: nn.Module, part: str | None) -> None:
    """Refuse a part of a model that has only one."""
    if part is not None:
        raise ConfigError(f"the {part} of a {type(model).__name__}", expected="no part: it has one stack of layers")


def without_layers(kind: str) -> UnsupportedError:
    """The error for a family that ignores the order of its tokens."""
    return UnsupportedError(
        f"the reach of a {kind}, which has no layers and no places",
        expected="a model that reads texts or images in layers",
    )


def chosen_part(part: str | None, encoder: ReachStack, decoder: ReachStack) -> list[ReachStack]:
    """The stack that reads alone, or both: the output states are those of the last."""
    if part not in (None, ENCODER, DECODER):
        raise ConfigError(f"part {part!r}", expected="encoder or decoder")
    return [encoder] if part == ENCODER else [encoder, decoder]
