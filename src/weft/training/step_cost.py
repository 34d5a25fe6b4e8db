"""What the settings of a training say about the cost of its steps (`weft.cost`)."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch

from weft.cost.learning import Learning, Update
from weft.models.base import Model
from weft.training.freezing import Frozen, freeze
from weft.training.optimizer import OptimizerConfig
from weft.training.settings import TrainingConfig


def learning_of(training: TrainingConfig) -> Learning:
    """How a step learns: what is frozen, in what parts and in which numbers, and how the weights are moved. Trainings
    that differ in other settings alone have the same, so that its cost is found once."""
    frozen = None if training.freeze is None else _frozen(training.freeze)
    return Learning(_update(training.optimizer), frozen, training.micro_batch, training.precision == "bf16")


@functools.lru_cache(maxsize=16)
def _frozen(what: Frozen) -> Callable[[Model], None]:
    return functools.partial(freeze, what=what)


@functools.lru_cache(maxsize=16)
def _update(optimizer: OptimizerConfig) -> Update:
    """Gradients are measured and made smaller, then comes the optimizer."""

    def update(model: Model) -> Callable[[], None]:
        rule = optimizer.build(model)
        learning = [p for p in model.parameters() if p.requires_grad]

        def move() -> None:
            gradients = [p.grad for p in learning if p.grad is not None]
            torch.stack(list(torch._foreach_norm(gradients))).norm()
            torch._foreach_mul_(gradients, 0.5)
            rule.step()

        return move

    return update
