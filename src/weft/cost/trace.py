"""One training step, written down without computing it: which operations, on tensors of which shapes, and how many
bytes are held at each moment.

torch's fake tensors take the same turns through the program as real ones on a processor would, fused kernels included,
and have no memory. So what is held when, and what is kept for backward, need no formula.
"""

from __future__ import annotations

import bisect
import functools
import weakref
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from weft.cost.flops import NoNumbers, with_numbers
from weft.cost.learning import PLAIN, Learning
from weft.cost.parts import parts_of_modules
from weft.models import ModelConfig
from weft.models.base import Model

WORKSPACE = 16  # numbers for each state of a fused LSTM


@dataclass(frozen=True)
class Blank:
    """A tensor without its numbers."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype

    @classmethod
    def of(cls, tensor: Tensor) -> Blank:
        return cls(tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)

    @property
    def bytes(self) -> int:
        """Of the numbers it shows; those that several places share count once."""
        if not all(self.shape):
            return 0
        return self.dtype.itemsize * (1 + sum((n - 1) * step for n, step in zip(self.shape, self.stride, strict=True)))


@dataclass(frozen=True)
class Operation:
    """A kernel of torch and its arguments, tensors among them as `Blank`."""

    function: Any
    arguments: tuple[Any, ...]
    named: tuple[tuple[str, Any], ...]

    def tensors(self) -> Iterator[Blank]:
        """Those among the arguments."""
        yield from _blanks((self.arguments, tuple(value for _, value in self.named)))


@dataclass
class Trace:
    """What was written down.

    steps        each operation with the part it belongs to, in order; those that only look at memory are counted in
                 `looks`
    weights      bytes of the model; likewise of `gradients`, of the optimizer's state, and of what backward keeps
    backward     the most bytes that were held at once until the gradients were there, and while weights were `moved`,
                 with what the optimizer had made in this first step
    """

    steps: list[tuple[str, Operation]] = field(default_factory=list)
    looks: Counter[str] = field(default_factory=Counter)
    weights: int = 0
    gradients: int = 0
    optimizer: int = 0
    activations: int = 0
    backward: int = 0
    moved: int = 0

    @property
    def peak(self) -> int:
        """The most bytes that are held at once in a later step, when the optimizer's state is there all the time."""
        return max(self.backward + self.optimizer, self.moved)


@functools.lru_cache(maxsize=16)
def trace(config: ModelConfig, *, batch: int, length: int, learning: Learning = PLAIN, parts: int = 1) -> Trace:
    """Write down a step on `batch` texts of `length` tokens, or on several such parts of a batch one after the other;
    then the weights are moved, if `learning` says how."""
    mode: Any = nullcontext() if config.needs_numbers else FakeTensorMode(allow_non_fake_inputs=True)
    with mode:
        model: Any = config.build() if config.needs_numbers else _fake(config.skeleton())

    def make(shape: tuple[int, ...], below: int) -> Tensor:
        with mode:
            return with_numbers(shape, below)

    learning.ready(model)
    found = Trace(weights=_bytes([*model.parameters(), *model.buffers()]))
    recorder = _Recorder(found, model)
    with recorder.following(), recorder, NoNumbers():
        for _ in range(parts):
            before = recorder.held
            with torch.autocast("cpu", torch.bfloat16, enabled=learning.bf16):
                loss = model.example_loss(batch, length, make)
            found.activations = recorder.held - before
            torch.autograd.backward(loss)
            del loss
        found.gradients = _bytes([p.grad for p in model.parameters() if p.grad is not None])
        found.backward = found.moved = found.weights + recorder.most
        if learning.update is not None:
            recorder.part, recorder.most = "optimizer", recorder.held
            before, move = recorder.held, learning.update(model)
            move()
            found.optimizer = recorder.held - before
            found.moved = found.weights + recorder.most
    return found


def _fake(model: Model) -> Model:
    """The skeleton with tensors of the kind that the mode around makes; tied weights stay tied."""
    made: dict[int, Tensor] = {}
    for block in model.modules():
        for name, p in block.named_parameters(recurse=False, remove_duplicate=False):
            if id(p) not in made:
                made[id(p)] = nn.Parameter(torch.empty(p.shape, dtype=p.dtype), requires_grad=p.requires_grad)
            setattr(block, name, made[id(p)])
        for name, buffer in block.named_buffers(recurse=False):
            setattr(block, name, torch.empty(buffer.shape, dtype=buffer.dtype))
        if isinstance(block, nn.RNNBase):
            block._flat_weights = [getattr(block, name) for name in block._flat_weights_names]
    return model


def _bytes(tensors: Sequence[Tensor]) -> int:
    return sum({id(t): t.untyped_storage().nbytes() for t in tensors}.values())


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees every kernel on its way, forward and backward, and the memory that is taken and given back."""

    def __init__(self, found: Trace, model: nn.Module) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found, self.model = found, model
        self.part = ""  # where the program is, forward
        self.held = self.most = 0
        self._known: set[int] = {t.untyped_storage()._cdata for t in (*model.parameters(), *model.buffers())}
        self._from: list[int] = [0]  # numbers of backward's nodes from which on they belong to a part
        self._parts: list[str] = [""]

    @contextmanager
    def following(self) -> Iterator[None]:
        """While it lasts, `part` is that of the innermost block that runs."""
        parts: list[str] = []

        def enter(part: str, *_: Any) -> None:
            parts.append(part or self.part)
            self._at(parts[-1])

        def leave(*_: Any) -> None:
            parts.pop()
            self._at(parts[-1] if parts else "")

        hooks, own = [], parts_of_modules(self.model)
        for name, block in self.model.named_modules():
            part = own[name]
            hooks.append(block.register_forward_pre_hook(functools.partial(enter, "" if part == "rest" else part)))
            hooks.append(block.register_forward_hook(leave))
        yield
        for hook in hooks:
            hook.remove()

    def _at(self, part: str) -> None:
        self.part = part
        self._from.append(torch._C._autograd._get_sequence_nr())
        self._parts.append(part)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if func.namespace == "prim":
            return out
        part = self._part()
        if _only_looks(func):
            self.found.looks[part] += 1
        else:
            self.found.steps.append(
                (part, Operation(func, _blank(tuple(args)), tuple((k, _blank(v)) for k, v in kwargs.items())))
            )
            self._hold(out)
            self._work(func._schema.name, args)
        return out

    def _part(self) -> str:
        node = torch._C._current_autograd_node()
        if node is None:
            return self.part or "rest"
        number = node._sequence_nr()
        if number >= 2**62:  # the end of the way, where gradients are added to those of a weight
            return "rest"
        return self._parts[bisect.bisect_right(self._from, number) - 1] or "rest"

    def _hold(self, out: Any) -> None:
        for tensor in out if isinstance(out, (tuple, list)) else (out,):
            if not isinstance(tensor, Tensor):
                continue
            storage = tensor.untyped_storage()
            if storage._cdata in self._known:
                continue
            self._known.add(storage._cdata)
            self.held += storage.nbytes()
            self.most = max(self.most, self.held)
            weakref.finalize(storage, self._free, storage._cdata, storage.nbytes())

    def _work(self, name: str, args: Any) -> None:
        """What the fused LSTM keeps from forward to backward, of which a trace is told nothing; backward takes as much
        again while it runs, and gives back both."""
        if name not in ("aten::mkldnn_rnn_layer", "aten::mkldnn_rnn_layer_backward"):
            return
        back = name.endswith("backward")
        kept = WORKSPACE * args[0].shape[:-1].numel() * args[15 if back else 10] * args[0].element_size()
        self.most = max(self.most, self.held + kept)
        self.held += -kept if back else kept

    def _free(self, key: int, size: int) -> None:
        self._known.discard(key)
        self.held -= size


def _only_looks(func: Any) -> bool:
    """Whether it gives another view of the same memory, and moves nothing."""
    return bool(getattr(func, "is_view", False)) or func._schema.name in ("aten::detach", "aten::_unsafe_view")


def _blank(value: Any) -> Any:
    if isinstance(value, Tensor):
        return Blank.of(value)
    if isinstance(value, (list, tuple)):
        return tuple(_blank(one) for one in value)
    return value


def _blanks(value: Any) -> Iterator[Blank]:
    if isinstance(value, Blank):
        yield value
    elif isinstance(value, tuple):
        for one in value:
            yield from _blanks(one)
