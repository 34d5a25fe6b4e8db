"""How long a training step takes here, from a short measurement: each kind of operation that a step is made of is done
once or a few times on this machine, at the sizes in use, and counted as often as the step does it.

A model of twelve equal layers does the same work twelve times, so the measurement is a small part of a step. Besides
the work itself every call of torch costs a few microseconds, which a tiny model tells.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import flop_registry

from weft.cost.flops import with_numbers
from weft.cost.learning import Learning, Update
from weft.cost.trace import Blank, Operation, Trace, trace
from weft.models.presets import tiny_model

PATIENCE = 0.05  # seconds after which an operation need not be repeated,
FEW, LONG = 3, 0.5  # once it was done a few times, or took this long: another process may come in between
MOST = 5  # times that it is done
COLD, COPIES = (
    24e6,
    6,
)  # bytes of arguments that take turns, and at most so many of each: in a step they are not at hand
NOW = time.perf_counter
RECURRENT = ("aten::mkldnn_rnn_layer", "aten::mkldnn_rnn_layer_backward")


@dataclass
class Clock:
    """Seconds of operations on this machine, measured when first asked for and then remembered.

    overhead   seconds that each call takes besides its work
    """

    overhead: float = 0.0
    known: dict[Operation, float] = field(default_factory=dict)

    def seconds(self, operation: Operation) -> float:
        """Of one call."""
        if operation not in self.known:
            self.known[operation] = _measured(operation)
        return self.known[operation]

    def of(self, found: Trace, scale: Callable[[int], float] = lambda _: 1.0) -> dict[str, float]:
        """Seconds of a step by part; `scale` says how much larger an operation really is than the one in its place."""
        parts: dict[str, float] = defaultdict(float)
        for place, (part, operation) in enumerate(found.steps):
            parts[part] += self.seconds(operation) * scale(place) + self.overhead
        for part, count in found.looks.items():
            parts[part] += count * self.overhead
        return dict(sorted(parts.items(), key=lambda item: -item[1]))

    @classmethod
    def calibrated(cls, update: Update) -> Clock:
        """One that knows what a call costs: a tiny model's steps take longer than their work does."""
        clock, config = cls(), tiny_model()
        found = trace(config, batch=1, length=16, learning=Learning(update))
        work = sum(clock.of(found).values())
        model: Any = config.build().train()
        move = update(model)

        def step() -> None:
            model.example_loss(1, 16, with_numbers).backward()
            move()
            model.zero_grad()

        taken = _usual(step, 20)
        calls = len(found.steps) + sum(found.looks.values())
        clock.overhead = max(0.0, (taken - work) / calls)
        return clock


def size_of(operation: Operation) -> float:
    """How large an operation is, for comparing it with another of its kind: products of matrices by their operations,
    others by the bytes they read."""
    packet = getattr(operation.function, "overloadpacket", None)
    if packet in flop_registry and packet not in (torch.ops.aten.convolution_backward,):
        blanks = list(operation.tensors())
        if packet in (torch.ops.aten.mm, torch.ops.aten.bmm, torch.ops.aten.addmm, torch.ops.aten.baddbmm):
            left, right = blanks[-2:]
            return float(torch.Size(left.shape).numel() * right.shape[-1])
    return float(sum(blank.bytes for blank in operation.tensors())) or 1.0


def _usual(work: Callable[[], Any], most: int = MOST) -> float:
    """Seconds of the middle one of a few times, the very first of which is forgotten."""
    work()
    times: list[float] = []
    while len(times) < most and (len(times) < FEW or sum(times) < PATIENCE) and sum(times) < LONG:
        began = NOW()
        work()
        times.append(NOW() - began)
    return statistics.median(times)


# -- one operation ----------------------------------------------------------------------------


def _measured(operation: Operation) -> float:
    if operation.function._schema.name in RECURRENT:
        return _recurrent(operation)
    if operation.function._schema.name in ("aten::_local_scalar_dense", "aten::item"):
        return 0.0
    bound = _bound(operation)
    copies = int(min(COPIES, max(1.0, COLD / (1 + sum(blank.bytes for blank in operation.tensors())))))
    given = [
        (_real(operation.arguments, bound), {name: _real(value, bound) for name, value in operation.named})
        for _ in range(copies)
    ]
    turn, kept = itertools.cycle(given), deque[Any](maxlen=copies)

    def work() -> None:
        arguments, named = next(turn)
        kept.append(operation.function(*arguments, **named))

    try:
        with torch.no_grad():
            return _usual(work)
    except RuntimeError:  # its whole numbers must fit together, and we do not know how; such a one is small
        return 0.0


def _bound(operation: Operation) -> int:
    """Whole numbers among the arguments are below this: rows of a table, mostly."""
    name = operation.function._schema.name
    if name == "aten::embedding":
        return int(operation.arguments[0].shape[0])
    if name == "aten::embedding_dense_backward":
        return int(operation.arguments[2])
    return 1


def _real(value: Any, bound: int) -> Any:
    """Arguments with numbers in them."""
    if isinstance(value, Blank):
        return _filled(value, bound)
    if isinstance(value, tuple):
        return [_real(one, bound) for one in value]
    return value


def _filled(blank: Blank, bound: int) -> Tensor:
    made = torch.empty_strided(blank.shape, blank.stride, dtype=blank.dtype)
    if not blank.dtype.is_floating_point:
        flat = torch.randint(max(1, bound), (max(1, blank.bytes // blank.dtype.itemsize),)).to(blank.dtype)
        return flat.as_strided(blank.shape, blank.stride)
    if all(blank.shape):
        made.as_strided((blank.bytes // blank.dtype.itemsize,), (1,)).fill_(0.75)
    return made


def _recurrent(operation: Operation) -> float:
    """torch's fused recurrent layer keeps what only it can read: it is run as a whole, and backward is what is left."""
    given, forward = operation.arguments, operation.function._schema.name == RECURRENT[0]
    settings = given[7:16] if forward else (given[13], given[20], *given[14:18], given[19], given[21], given[18])
    x, *weights = (_filled(blank, 1).sub_(1).requires_grad_() for blank in given[:5])
    states = [_filled(blank, 1) for blank in given[5:7]]

    def there() -> Tensor:
        found: Tensor = torch.ops.aten.mkldnn_rnn_layer(x, *weights, *states, *_real(settings, 1))[0]
        return found

    once = _usual(there)
    return once if forward else max(0.0, _usual(lambda: torch.autograd.backward(there().sum())) - once)
