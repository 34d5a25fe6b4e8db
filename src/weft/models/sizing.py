"""Size presets of a family by budget, and its training settings.

A config class has one `Sizing` for each capability that its family can be trained for (`ModelConfig.learns`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.models.base import ModelConfig

Fields = Mapping[str, Any]


@dataclass(frozen=True)
class Budget:
    """The budget of a training run.

    flops     operations of training in all
    holds     whether a model with these settings fits into memory, given the data; None: any fits
    image     rows of an image, where images are learned from
    """

    flops: float
    holds: Callable[[ModelConfig, Sizing], bool] | None = None
    image: int = 0

    def halvings(self, rows: int) -> int:
        """How often an image is halved until about so many rows are left."""
        return max(0, math.floor(math.log2(self.image / rows) + 0.25))


@dataclass(frozen=True)
class SizePreset:
    """A size for more than `above` operations of training.

    model     fields of the model
    length    tokens that are read at a time, and `batch` such texts in a step; 0: the task says it
    """

    model: Fields
    above: float = 0.0
    length: int = 0
    batch: int = 0


@dataclass(frozen=True)
class Sizing:
    """How a family is trained for one capability, before the user says otherwise.

    head        fields of the model that the capability needs
    sizes       from the smallest to the largest; a function where they follow from the data
    training    settings of training
    objective   fields of the objective, where they are not the usual ones
    pairs       fields of the model for pairs of texts
    default     whether it is the model of a task that needs the capability, when none is named
    """

    sizes: Sequence[SizePreset] | Callable[[Budget], Sequence[SizePreset]] = (SizePreset({}),)
    head: Fields = field(default_factory=dict)
    training: Fields = field(default_factory=dict)
    objective: Fields = field(default_factory=dict)
    pairs: Fields = field(default_factory=dict)
    default: bool = False

    def choose(self, budget: Budget, model: ModelConfig | None = None) -> SizePreset:
        """The largest size for the budget that fits into memory; the smallest, if there is none for any."""
        chosen, *larger = self.sizes(budget) if callable(self.sizes) else self.sizes
        for size in larger:
            if budget.flops <= size.above:
                break
            if budget.holds is not None and model is not None and not budget.holds(model.override(size.model), self):
                break
            chosen = size
        return chosen


def _laptop(above: float, width: int, depth: int, heads: int, length: int, batch: int) -> SizePreset:
    fields = {"width": width, "depth": depth, "max_length": length, "attention.heads": heads}
    return SizePreset(fields, above, length, batch)


LAPTOP_SIZES = (
    # of a Transformer of one stack: for a given amount of computing, the size that reached the lowest validation loss
    # on texts of about a megabyte (docs/decisions/004-default-gpt.md)
    _laptop(0, 128, 3, 4, 64, 12),
    _laptop(4e12, 128, 4, 4, 128, 12),
    _laptop(2e13, 192, 5, 6, 128, 16),
    _laptop(8e13, 256, 6, 8, 256, 8),
    _laptop(3e14, 384, 6, 6, 256, 16),
    _laptop(3e15, 512, 8, 8, 512, 16),
)
