"""Weights averaged over the last evaluations (the paper's checkpoint averaging): what training still swings around.

Polyak & Juditsky 1992; Vaswani et al. 2017 average the last 5 checkpoints of a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from weft.errors import DataError


class Averaging:
    """Keeps the weights at the last `count` evaluations; inside `applied()` the model has their mean."""

    def __init__(self, model: nn.Module, count: int) -> None:
        self.model, self.count = model, count
        self.kept: list[dict[str, Tensor]] = []

    def __repr__(self) -> str:
        return f"Averaging({len(self.kept)} of {self.count})"

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Take the weights as they are now; the model then is the mean of those kept, until the block ends."""
        if self.count < 2:
            yield
            return
        params = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        now = {name: p.detach().clone() for name, p in params.items()}
        self.kept = [*self.kept, now][-self.count :]
        with torch.no_grad():
            for name, p in params.items():
                p.copy_(torch.stack([state[name] for state in self.kept]).mean(0))
        try:
            yield
        finally:
            with torch.no_grad():
                for name, p in params.items():
                    p.copy_(now[name])

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint holds of it: `number of the evaluation` + `/` + `name of the parameter`."""
        return {f"{place}/{name}": p for place, state in enumerate(self.kept) for name, p in state.items()}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """The inverse."""
        params = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        count = len(tensors) // max(1, len(params))
        expected = {f"{place}/{name}": p for place in range(count) for name, p in params.items()}
        if tensors.keys() != expected.keys() or any(tensors[name].shape != p.shape for name, p in expected.items()):
            raise DataError("the averaged weights of the checkpoint do not fit the model")
        self.kept = [
            {name: tensors[f"{place}/{name}"].to(p.device) for name, p in params.items()} for place in range(count)
        ]
