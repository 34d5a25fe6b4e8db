"""Operations of one training step by part, found by walking through the real model without numbers.

The model is built on torch's `meta` device, where tensors have shapes and no memory, and called as training calls it;
each block that multiplies matrices then tells what it costs (`rules.py`). So every family is counted by the same few
rules, and a new one that is made of known blocks needs none of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from weft.cost.learning import PLAIN, Learning
from weft.cost.parts import part_of
from weft.cost.rules import has_slope, shape_of, work_of
from weft.cost.step import step_loss
from weft.models import ModelConfig
from weft.models.bag_of_words import BagOfWords


@dataclass
class Operations:
    """Multiplications and additions of a part, forward and backward; `unseen` are those of both that a fast kernel
    leaves out, because a causal mask forbids them."""

    forward: float = 0.0
    backward: float = 0.0
    unseen: float = 0.0

    @property
    def total(self) -> float:
        return self.forward + self.backward

    def __add__(self, other: Operations) -> Operations:
        return Operations(self.forward + other.forward, self.backward + other.backward, self.unseen + other.unseen)


@dataclass
class Walk:
    """What a walk through a model found: operations by part, the largest first."""

    parts: dict[str, Operations] = field(default_factory=dict)

    @property
    def total(self) -> Operations:
        return sum(self.parts.values(), Operations())

    def of(self, word: str) -> float:
        """Operations of all parts whose name ends so, forward and backward."""
        return sum(found.total for part, found in self.parts.items() if part.endswith(word))


class NoNumbers(TorchFunctionMode):
    """Answers what a model asks about numbers where there are none: no bias forbids anything, no text is too long."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        asked = getattr(func, "__name__", "")
        if asked in ("__bool__", "__int__", "item") and args[0].is_meta:
            return False if asked == "__bool__" else 0
        return func(*args, **(kwargs or {}))


def without_numbers(shape: tuple[int, ...], below: int) -> Tensor:
    """A tensor for `step_loss` with a shape and nothing else."""
    return torch.empty(shape, dtype=torch.int64 if below else torch.float32, device="meta")


def walk(config: ModelConfig, *, batch: int, length: int, learning: Learning = PLAIN) -> Walk:
    """Operations of one training step on `batch` texts of `length` tokens, or pictures of so many rows.

    Scores of attention are counted for all pairs, as the plain way of computing them does; `unseen` tells how many of
    them a fast kernel leaves out. Kinds that compute tiles or sums of features are counted as they do it. Nobody asks
    for slopes of what is frozen, nor of what lies before it.
    """
    if not config.learned_in_steps:
        return Walk()
    model = learning.ready(config.skeleton())
    found = Walk()
    with _counting(model, found), NoNumbers():
        step_loss(config, model, without_numbers, batch, length)
    found.parts = dict(sorted(found.parts.items(), key=lambda item: -item[1].total))
    return found


@contextmanager
def _counting(model: nn.Module, found: Walk) -> Iterator[None]:
    """While it lasts, each block that is called tells what it costs; blocks whose result is known are not run."""
    for name, block in model.named_modules():
        block.register_forward_pre_hook(functools.partial(_note, found, name), with_kwargs=True)
        if shape_of.dispatch(type(block)) is not shape_of.dispatch(object):
            block.forward = functools.partial(shape_of, block)
    if isinstance(model, BagOfWords):
        model.text_logits = lambda row: shape_of(model, row.unpadded.lengths)  # type: ignore[method-assign]
    yield


def _note(found: Walk, name: str, block: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    learns = has_slope(block, (*args, *kwargs.values()))
    for work in work_of(block, args, kwargs):
        part = work.part or part_of(name, block)
        back = work.backward if learns else 0.0
        unseen = work.unseen * (1 + back / work.forward) if work.unseen else 0.0
        found.parts[part] = found.parts.get(part, Operations()) + Operations(work.forward, back, unseen)
