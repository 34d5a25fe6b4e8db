"""How a model learns, as far as that changes what a step costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from weft.models.base import Model

Update = Callable[[Model], Callable[[], None]]
"""What makes of a model the rule that moves its weights."""


@dataclass(frozen=True)
class Learning:
    """What is done in a step besides the model's own work.

    update       how the weights are moved; None: they are not
    freeze       marks what does not learn
    micro_batch  the batch is cut into parts of this size, whose gradients are added up; None: it is not
    bf16         products are computed in bf16
    """

    update: Update | None = None
    freeze: Callable[[Model], None] | None = None
    micro_batch: int | None = None
    bf16: bool = False

    def part(self, batch: int) -> int:
        """How much of a batch is in memory at once."""
        return min(batch, self.micro_batch or batch)

    def ready(self, model: Model) -> Model:
        """The model as it learns."""
        if self.freeze is not None:
            self.freeze(model)
        return model.train()


PLAIN = Learning()
