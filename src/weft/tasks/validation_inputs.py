"""A few inputs of what a run holds out, the same ones whenever it is looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from weft.analysis import AttentionMap, capture
from weft.data import TokenFile
from weft.objectives import causal_loss

MAX_INPUTS = 4  # inputs: enough for thousands of rows of weights
MAX_INPUT_TOKENS = 256  # tokens of each


@dataclass(frozen=True, eq=False)
class ValidationInputs:
    """Batches of one input each, so that nothing is padded, and the loss that takes them."""

    loss: Callable[[nn.Module, Any], tuple[Any, ...]]
    batches: list[Any]

    def looks(self, model: nn.Module) -> Iterator[Mapping[str, AttentionMap]]:
        """The attention of each input. The model is as it was afterwards, and no random number is used."""
        device = next((p.device for p in model.parameters()), torch.device("cpu"))
        with _at_rest(model), torch.no_grad():
            for batch in self.batches:
                with capture(model) as maps:
                    self.loss(model, batch.to(device))
                yield maps


def windows_of(tokens: TokenFile, length: int) -> ValidationInputs:
    """Of a text for a language model."""
    length = max(1, min(length, MAX_INPUT_TOKENS, len(tokens) - 1))
    ids = np.asarray(tokens.ids)
    starts = some_of(len(ids) - length)
    windows = [torch.from_numpy(ids[start : start + length + 1].astype(np.int64))[None] for start in starts]
    return ValidationInputs(causal_loss, windows)


def some_of(count: int, wanted: int = MAX_INPUTS) -> list[int]:
    """So many numbers below `count`, as far from each other as they can be."""
    return sorted(set(np.linspace(0, count - 1, min(wanted, count)).astype(int).tolist()))


@contextmanager
def _at_rest(model: nn.Module) -> Iterator[None]:
    """In eval mode inside, each module in its own mode again after it; the random state too."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        for module, mode in modes:
            module.training = mode
