"""Operations of one training step by part, found by walking through the real model without numbers.

The model is built on torch's `meta` device, where tensors have shapes and no memory, and does the training step that
its family gives as an example. Every product of matrices on the way is counted, whichever block makes it. Blocks that
compute otherwise with numbers than without (attention by a fused kernel or in tiles, recurrence) say what they make
(`operations`, or a rule in `rules.py`), and are not run. What is no product of matrices (norms, activations, softmax,
looking up) is not counted.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from weft.cost.learning import PLAIN, Learning
from weft.cost.parts import parts_of_modules
from weft.cost.rules import has_gradient, says_operations, shape_of, work_of
from weft.errors import UnsupportedError
from weft.models import ModelConfig

aten = torch.ops.aten


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
class OperationCount:
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
        if asked in ("__bool__", "__int__", "item") and (args[0].is_meta or isinstance(args[0], FakeTensor)):
            return False if asked == "__bool__" else 0
        return func(*args, **(kwargs or {}))


def with_numbers(shape: tuple[int, ...], below: int) -> Tensor:
    """An example tensor that is drawn."""
    return torch.randint(below, shape) if below else torch.randn(shape)


def without_numbers(shape: tuple[int, ...], below: int) -> Tensor:
    """An example tensor with a shape and nothing else."""
    return torch.empty(shape, dtype=torch.int64 if below else torch.float32, device="meta")


@functools.lru_cache(maxsize=64)
def walk(config: ModelConfig, *, batch: int, length: int, learning: Learning = PLAIN) -> OperationCount:
    """Operations of one training step on `batch` texts of `length` tokens, or images of so many rows.

    Scores of attention are counted for all pairs, as the plain way of computing them does; `unseen` tells how many of
    them a fast kernel leaves out. Kinds that compute tiles or sums of features are counted as they do it. Nobody asks
    for gradients of what is frozen, nor of what lies before it.
    """
    if not config.learned_in_steps:
        return OperationCount()
    model: Any = learning.ready(config.build() if config.needs_numbers else config.skeleton())
    found = OperationCount()
    with _counting(model, found), NoNumbers():
        model.example_loss(batch, length, with_numbers if config.needs_numbers else without_numbers)
    found.parts = dict(sorted(found.parts.items(), key=lambda item: -item[1].total))
    return found


@contextmanager
def _counting(model: nn.Module, found: OperationCount) -> Iterator[None]:
    """While it lasts, each block that is called says what it costs, and is not run if its result is known; products in
    other blocks are counted as they are made."""
    products, parts = _Products(found), parts_of_modules(model)
    for name, block in model.named_modules():
        block.register_forward_pre_hook(functools.partial(_enter, products, parts[name]), with_kwargs=True)
        block.register_forward_hook(products.leave)
        if shape_of.dispatch(type(block)) is not shape_of.dispatch(object):  # all of these say their operations
            block.forward = functools.partial(shape_of, block)
    with products:
        yield


def _enter(products: _Products, part: str, block: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    products.enter(part, says_operations(block))
    learns = has_gradient(block, (*args, *kwargs.values()))
    for work in work_of(block, args, kwargs):
        back = work.backward if learns else 0.0
        unseen = work.unseen * (1 + back / work.forward) if work.unseen else 0.0
        products.add(Operations(work.forward, back, unseen), work.part)


class _Products(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees every kernel on its way forward. A product of matrices belongs to the innermost block that runs; if that
    says its operations, they are counted already. Backward, a product is made again for each factor with a gradient."""

    def __init__(self, found: OperationCount) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found = found
        self.inside: list[tuple[str, bool]] = [("rest", False)]

    def enter(self, part: str, says: bool) -> None:
        self.inside.append((self.inside[-1][0] if part == "rest" else part, says))

    def leave(self, *_: Any) -> None:
        self.inside.pop()

    def add(self, operations: Operations, part: str = "") -> None:
        part = part or self.inside[-1][0]
        self.found.parts[part] = self.found.parts.get(part, Operations()) + operations

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        kernel = func.overloadpacket
        if kernel in KNOWN and not self.inside[-1][1]:
            if kernel not in PRODUCTS:
                raise UnsupportedError(
                    f"{kernel} in a block of {self.inside[-1][0]}, whose operations nobody counts",
                    expected="a block with a method `operations`, which says them (weft.blocks.work)",
                )
            first = PRODUCTS[kernel]
            left, right = args[first : first + 2]
            forward = _convolved(out, args) if kernel is aten.convolution else 2.0 * out.numel() * left.shape[-1]
            gradients = left.requires_grad + right.requires_grad if torch.is_grad_enabled() else 0
            self.add(Operations(forward, gradients * forward))
        return out


def _convolved(out: Tensor, args: Any) -> float:
    x, weight, transposed = args[0], args[1], args[6]
    places = x if transposed else out
    return 2.0 * places.shape[0] * places.shape[2:].numel() * weight.numel()


PRODUCTS = {  # where the two factors begin among the arguments
    **dict.fromkeys((aten.mm, aten.bmm, aten.mv, aten.dot, aten.convolution), 0),
    **dict.fromkeys((aten.addmm, aten.baddbmm, aten.addmv), 1),
}
KNOWN = {*PRODUCTS, *flop_registry, aten._trilinear, aten.addbmm, aten._cdist_forward}  # counted, or refused
