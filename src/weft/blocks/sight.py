"""What a layer sees: small descriptions by the layer itself, in the order in which its parts run.

`weft.analysis.model_reach`, which traces states back to the inputs, reads these and needs no class of a layer. A
layer has a method `sees()`; torch's own recurrent layers are described by `recurrence`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from torch import nn


@dataclass(frozen=True)
class Looks:
    """By an attention, and itself by the residual around it.

    attention  its name among the modules of the layer
    at         whose keys: its own "stream", the "memory" of another stack, or one table that begins with the memory's
               and continues with its own ("both")
    """

    attention: str = "attention"
    at: Literal["stream", "memory", "both"] = "stream"


@dataclass(frozen=True)
class Recurs:
    """By states that are carried on from place to place: all that came before, or all in `both_ways`."""

    both_ways: bool = False


@dataclass(frozen=True)
class Begins:
    """With one state of the memory, that at `place`, for every query."""

    place: int


@dataclass(frozen=True)
class Recent:
    """The last `count` tokens and no other, itself the last of them."""

    count: int


@dataclass(frozen=True, eq=False)
class Convolves:
    """By the kernel of a convolution over the places of a grid; what goes around it by a residual lies within."""

    convolution: nn.Conv2d


Sight = Looks | Recurs | Begins | Recent | Convolves


@runtime_checkable
class Sees(Protocol):
    """A layer that describes what it sees."""

    def sees(self) -> tuple[Sight, ...]:
        """In the order in which its parts run."""
        ...


def recurrence(layer: nn.RNNBase) -> Recurs:
    """What one of torch's recurrent layers sees."""
    return Recurs(both_ways=layer.bidirectional)
