"""What one training step of a model costs: the one place that plans, `weft inspect`, reports and comparisons ask.

    found = cost_of(config, batch=16, length=256)
    found.parameters, found.flops, found.memory(), found.seconds(clock)

All of it comes from the training step that the family gives as an example (`Model.example_loss`), done on tensors that
have shapes and no numbers: operations by `flops.py`, memory and seconds by `trace.py`. Nothing is computed until it is
asked for, and what was found for a model and sizes is remembered.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from weft.cost.estimate import MemoryEstimate, memory_of, seconds_of
from weft.cost.flops import Operations, walk
from weft.cost.learning import PLAIN, Learning
from weft.cost.parts import parameters_by_part
from weft.cost.seconds import Clock
from weft.models import ModelConfig


@dataclass(frozen=True)
class Cost:
    """Of a step on `batch` texts of `length` tokens (pairs of texts: on each side), or images of so many rows."""

    config: ModelConfig
    batch: int
    length: int
    learning: Learning = PLAIN

    @cached_property
    def parameters_by_part(self) -> dict[str, int]:
        """How many numbers are learned or kept in each part, the largest first."""
        return parameters_by_part(self.config.skeleton())

    @property
    def parameters(self) -> int:
        return sum(self.parameters_by_part.values())

    @property
    def parts(self) -> dict[str, Operations]:
        """Operations by part, forward and backward, the largest first."""
        return walk(self.config, batch=self.batch, length=self.length, learning=self.learning).parts

    @property
    def operations(self) -> Operations:
        """Those of all parts."""
        return sum(self.parts.values(), Operations())

    @property
    def flops(self) -> float:
        """Multiplications and additions, forward and backward."""
        return self.operations.total

    def memory(self, process: int = 0) -> MemoryEstimate:
        """Bytes at the peak, beside those that the process has before there is a model."""
        return memory_of(self.config, batch=self.batch, length=self.length, learning=self.learning, process=process)

    def seconds(self, clock: Clock) -> dict[str, float]:
        """By part, on the machine that the clock knows."""
        return seconds_of(self.config, clock, batch=self.batch, length=self.length, learning=self.learning)


def cost_of(config: ModelConfig, *, batch: int, length: int, learning: Learning = PLAIN) -> Cost:
    """What a step of a model with these settings costs; `learning` says what is frozen and how weights are moved."""
    return Cost(config, batch, length, learning)
