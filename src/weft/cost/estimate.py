"""What a training step of a model needs: bytes, and seconds on this machine; from a trace of it (`trace.py`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from torch import nn

from weft.blocks import Attention
from weft.blocks.attention.kernel import KernelAttention
from weft.blocks.attention.pattern import PatternAttention
from weft.blocks.attentive import AttentiveGRU
from weft.cost.learning import PLAIN, Learning
from weft.cost.seconds import Clock, size_of
from weft.cost.trace import Trace, trace
from weft.models import ModelConfig

HEAP = 0.4  # what the C library holds besides what is in use: gaps that nothing fits into
SHORT = (16, 32, 48)  # tokens of texts on which a model that goes token by token is traced
TIMED = (16, 48)  # and measured: farther from each other, as a measurement is never exact
LARGE = 2e10  # multiplications that may be measured; of larger steps, a part of the batch is
FLOAT = 4
IN_PLACE = 16  # bytes for each token that a loop of its own reads


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes of a training step at its peak.

    activations   what backward keeps of forward
    working       gradients on their way, what a kernel needs for itself, and gaps in the heap
    process       Python, torch and its kernels, before there is a model
    table         keys and values (or states) for writing one text of this length; not part of the training step
    """

    weights: int
    gradients: int
    optimizer: int
    activations: int
    working: int
    process: int = 0
    table: int = 0

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.optimizer + self.activations + self.working + self.process


def memory_of(
    config: ModelConfig, *, batch: int, length: int, learning: Learning = PLAIN, process: int = 0
) -> MemoryEstimate:
    """Bytes of a step, from the trace of one; of a batch in parts, gradients of the first are there while the second is
    worked on."""
    if not config.learned_in_steps:
        return MemoryEstimate(0, 0, 0, 0, 0, process)
    if config.learned_in_place:  # a checkpoint copies the weights; of a token, its number and place are held
        weights = FLOAT * sum(p.numel() for p in config.skeleton().parameters())
        return MemoryEstimate(weights, 0, 0, 0, weights + IN_PLACE * batch * length, process)
    names = ("weights", "gradients", "optimizer", "activations", "backward", "moved")

    def found(at: int) -> list[float]:
        part = learning.part(batch)
        traced = trace(config, batch=part, length=at, learning=learning, parts=1 if part == batch else 2)
        return [float(getattr(traced, name)) for name in names]

    told = dict(zip(names, (int(n) for n in _at_length(config, length, found, SHORT)), strict=True))
    needed = Trace(**told)  # type: ignore[arg-type]
    working = max(0, int((1 + HEAP) * needed.peak) - sum(told[name] for name in names[:4]))
    return MemoryEstimate(
        needed.weights,
        needed.gradients,
        needed.optimizer,
        needed.activations,
        working,
        process,
        table_bytes(config, length),
    )


def fitting_batch(
    config: ModelConfig, *, batch: int, length: int, learning: Learning, process: int, free: float
) -> int:
    """The largest part of the batch for which there is room, if it is done in parts; 0: there is none for a single
    text. What is needed does not grow evenly (the optimizer has its own peak), so it is tried."""
    none, too_many = 0, batch + 1
    while too_many - none > 1:
        part = (none + too_many) // 2
        tried = memory_of(
            config, batch=batch, length=length, learning=replace(learning, micro_batch=part), process=process
        )
        none, too_many = (part, too_many) if tried.total <= free else (none, part)
    return none


def seconds_of(config: ModelConfig, clock: Clock, *, batch: int, length: int, learning: Learning) -> dict[str, float]:
    """Seconds of a step by part, predicted from operations that are measured one by one."""
    if not config.learned_in_steps or config.learned_in_place:
        return {}
    names: list[str] = []

    def found(at: int) -> list[float]:
        parts = _seconds(config, clock, batch, at, learning)
        names.extend(part for part in parts if part not in names)
        return [parts.get(name, 0.0) for name in names]

    times = _at_length(config, length, found, TIMED)
    return dict(sorted(zip(names, (max(0.0, t) for t in times), strict=True), key=lambda item: -item[1]))


def _seconds(config: ModelConfig, clock: Clock, batch: int, length: int, learning: Learning) -> dict[str, float]:
    """Of a batch in parts, each after the first costs what two parts cost more than one."""
    part = learning.part(batch)
    once = _seconds_of_parts(config, clock, part, length, learning)
    if part == batch:
        return once
    twice = _seconds_of_parts(config, clock, part, length, learning, parts=2)
    more = batch / part - 1
    return {name: once.get(name, 0.0) + more * (both - once.get(name, 0.0)) for name, both in twice.items()}


def _seconds_of_parts(
    config: ModelConfig, clock: Clock, batch: int, length: int, learning: Learning, parts: int = 1
) -> dict[str, float]:
    """A large part is measured in part, and what is left out is taken to be like it."""
    whole = trace(config, batch=batch, length=length, learning=learning, parts=parts)
    large = sum(size_of(operation) for operation in {operation for _, operation in whole.steps})
    fewer = max(1, int(batch * LARGE / large)) if large > LARGE else batch
    if fewer >= batch:
        return clock.of(whole)
    part = trace(config, batch=fewer, length=length, learning=learning, parts=parts)
    if [op.function for _, op in part.steps] != [op.function for _, op in whole.steps]:
        return {name: seconds * batch / fewer for name, seconds in clock.of(part).items()}
    pairs = list(zip(whole.steps, part.steps, strict=True))
    return clock.of(part, lambda place: size_of(pairs[place][0][1]) / size_of(pairs[place][1][1]))


def _loops(config: ModelConfig) -> int:
    """Whether torch's kernels take one token after the other, each a few operations, and if so which power of the
    length a step's cost grows with: 1, or 2 if each token also looks at all of a memory; 0: there is no such loop."""
    blocks = [type(block) for block in config.skeleton().modules()]
    if AttentiveGRU in blocks:
        return 2
    return 1 if nn.GRU in blocks or nn.RNN in blocks else 0  # torch has a fused kernel for LSTM


def _at_length(
    config: ModelConfig, length: int, found: Callable[[int], list[float]], short: Sequence[int]
) -> Sequence[float]:
    """What `found` tells at this length; of a long loop, continued from `short` texts: numbers that grow with the first
    or second power of the length are known from two or three lengths (Lagrange)."""
    power = _loops(config)
    short = short[: power + 1]
    if not power or power >= len(short) or length <= short[-1]:
        return found(length)
    shares = [math.prod((length - other) / (at - other) for other in short if other != at) for at in short]
    known = [found(at) for at in short]
    return [sum(share * one for share, one in zip(shares, same, strict=True)) for same in zip(*known, strict=True)]


def table_bytes(config: ModelConfig, length: int) -> int:
    """Keys and values that are kept while one text of this length is written; of a pair, those of its source too."""
    model, total = config.skeleton(), 0
    if not hasattr(model, "new_caches") or not config.learned_in_steps:
        return 0
    for name, block in model.named_modules():
        if isinstance(block, Attention) and not name.startswith("encoder."):
            total += FLOAT * _kept(block, length)
        elif isinstance(block, nn.RNNBase) and not name.startswith("encoder."):
            total += FLOAT * block.hidden_size * (2 if isinstance(block, nn.LSTM) else 1)
    return total


def _kept(block: Attention, length: int) -> int:
    keys, values = block.key.out_features, block.value.out_features
    if isinstance(block.core, KernelAttention):  # one sum, however long the text
        features = len(getattr(block.core, "directions", ())) or keys // block.kv_heads
        return block.kv_heads * features * (values // block.kv_heads + 1)
    if isinstance(block.core, PatternAttention):
        length = min(length, block.core.pattern.reach() or length)
    return length * (keys + values)
