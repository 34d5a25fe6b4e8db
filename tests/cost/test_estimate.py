"""Memory and seconds of a step, predicted without doing it, against a step that is done."""

import dataclasses
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from fixtures.operations import LEARNED_FAMILIES, make_numbers, make_small_config, usual_length
from weft.cost import estimate, seconds
from weft.cost.estimate import MemoryEstimate, fitting_batch, memory_of, seconds_of, table_bytes
from weft.cost.parts import parameters_by_part, parts_of_modules
from weft.cost.seconds import Clock
from weft.cost.trace import trace
from weft.models import GPTConfig, NGramConfig
from weft.training import TrainingConfig
from weft.training.step_cost import learning_of

LEARNING = learning_of(TrainingConfig(steps=1, batch=1))
BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "cost.py"


@pytest.mark.parametrize("family", LEARNED_FAMILIES)
def test_parameters_by_part_are_all_of_them(family):
    model = make_small_config(family).build()
    assert sum(parameters_by_part(model).values()) == sum(p.numel() for p in model.parameters())
    assert "rest" not in parameters_by_part(model)


def test_tied_weights_count_once():
    tied, own = (GPTConfig(vocab_size=96, width=64, tied=t) for t in (True, False))
    assert "head" not in parameters_by_part(tied.skeleton())
    assert parameters_by_part(own.skeleton())["head"] == 96 * 64
    assert trace(tied, batch=1, length=8).weights == 4 * sum(p.numel() for p in tied.skeleton().parameters())
    assert parts_of_modules(own.skeleton())["layers.0.attention.core"] == "attention scores"


@pytest.mark.parametrize("family", ["gpt", "bert", "transformer", "vit", "resnet", "gru"])
def test_what_is_kept_for_backward(family):
    """The same bytes as a real step holds between forward and backward."""
    config = make_small_config(family)
    batch, length = 2, usual_length(config)
    found = trace(config, batch=batch, length=length)
    model = config.build().train()
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model.example_loss(batch, length, make_numbers)
    real = sum(storage.nbytes() for storage in kept.values())
    assert found.weights == sum(p.numel() * 4 for p in model.parameters())
    assert found.gradients == found.weights
    assert real <= 1.05 * found.activations
    assert real >= 0.75 * found.activations  # the loss, masks and what is about to be freed are held too


def test_attention_without_the_fused_kernel_keeps_its_square():
    fused, plain = (GPTConfig(vocab_size=32, width=32, attention={"kind": kind}) for kind in ("softmax", "hard"))
    a, b = (trace(config, batch=1, length=256).activations for config in (fused, plain))
    assert b - a > 4 * 256 * 256 * 4


def test_the_optimizer_has_a_state_of_its_own():
    adamw = learning_of(TrainingConfig(steps=1, batch=1, optimizer={"kind": "adamw"}))
    config = make_small_config("gpt")
    found = trace(config, batch=1, length=8, learning=adamw)
    assert found.optimizer == pytest.approx(2 * found.weights, rel=0.01)
    assert 0.9 * found.weights < trace(config, batch=1, length=8, learning=LEARNING).optimizer < 2 * found.weights


def test_what_is_frozen_needs_no_slope_and_keeps_less():
    config = make_small_config("gpt", depth=4)
    plain, frozen = (
        trace(config, batch=4, length=64, learning=learning_of(TrainingConfig(steps=1, batch=1, freeze=what)))
        for what in (None, 3)
    )
    assert frozen.weights == plain.weights
    assert frozen.gradients < 0.5 * plain.gradients and frozen.optimizer < 0.5 * plain.optimizer
    assert frozen.activations < 0.7 * plain.activations


def test_bf16_keeps_less():
    config = make_small_config("gpt", depth=4)
    plain, half = (
        trace(config, batch=4, length=64, learning=learning_of(TrainingConfig(steps=1, batch=1, precision=precision)))
        for precision in ("float32", "bf16")
    )
    kinds = {blank.dtype for part, operation in half.steps if part == "feed-forward" for blank in operation.tensors()}
    assert torch.bfloat16 in kinds and half.weights == plain.weights and half.gradients == plain.gradients
    assert half.activations < 0.85 * plain.activations


def test_a_batch_in_parts():
    """As much as a part needs, and the gradients of the part before; as long as all of them take."""
    config = make_small_config("gpt", depth=2)
    parts, whole = (TrainingConfig(steps=1, batch=1, micro_batch=size) for size in (4, None))
    needed, small_one, all_at_once = (
        memory_of(config, batch=batch, length=64, learning=learning_of(training))
        for batch, training in ((32, parts), (4, whole), (32, whole))
    )
    assert needed.activations == pytest.approx(small_one.activations, rel=0.02)
    assert small_one.total <= needed.total < 0.5 * all_at_once.total
    clock = _PretendedClock()
    sums = [
        sum(seconds_of(config, clock, batch=batch, length=64, learning=learning_of(training)).values())
        for batch, training in ((4, parts), (8, parts), (32, parts))
    ]
    each = sums[1] - sums[0]
    assert 0.5 * sums[0] < each < sums[0], "all but the optimizer"
    assert sums[2] == pytest.approx(sums[0] + 7 * each)


class _PretendedClock(Clock):
    """Every operation takes as long as it has bytes."""

    def seconds(self, operation):
        return 1e-9 * sum(blank.bytes for blank in operation.tensors())


def test_memory_and_the_batch_that_fits():
    memory = MemoryEstimate(weights=10, gradients=10, optimizer=20, activations=60, working=20, process=100)
    assert memory.total == 220
    config = make_small_config("gpt")
    small_batch, large = (memory_of(config, batch=n, length=64, learning=LEARNING) for n in (2, 8))
    assert large.activations == pytest.approx(4 * small_batch.activations, rel=0.05)
    assert memory_of(NGramConfig(vocab_size=9), batch=1, length=9).total == 0


@pytest.mark.parametrize("config", [make_small_config("gpt"), GPTConfig(vocab_size=64, width=512, depth=1)])
def test_the_part_that_fits_does(config):
    """Also where most is needed while weights are moved, which no smaller batch changes."""

    def needed(part):
        return memory_of(
            config, batch=32, length=64, learning=dataclasses.replace(LEARNING, micro_batch=part), process=1000
        ).total

    asked = {"batch": 32, "length": 64, "learning": LEARNING, "process": 1000}
    for free in (needed(1) - 1, needed(1), needed(5), needed(32), 2 * needed(32)):
        part = fitting_batch(config, free=free, **asked)
        assert part == 0 or needed(part) <= free
        assert part == 32 or needed(part + 1) > free


def test_the_optimizer_is_there_once():
    """Its state stands beside the backward pass of later steps, and is part of what is held while weights are moved."""
    light, heavy = GPTConfig(vocab_size=64, width=32, depth=1), GPTConfig(vocab_size=64, width=512, depth=1)
    found = trace(light, batch=64, length=128, learning=LEARNING)
    assert found.peak == found.backward + found.optimizer > found.moved
    found = trace(heavy, batch=1, length=8, learning=LEARNING)
    assert found.peak == found.moved > found.backward + found.optimizer
    assert found.moved > found.weights + found.gradients + found.optimizer


@pytest.mark.parametrize("family", ["rnn", "bahdanau"])
def test_a_long_loop_is_continued_from_short_ones(family):
    """What is kept for backward exactly: it grows with the length, or with its square where all of a memory is seen."""
    config = make_small_config(family, width=32)
    straight = trace(config, batch=2, length=52)
    assert memory_of(config, batch=2, length=52).activations == straight.activations


def test_tables_for_writing():
    assert table_bytes(GPTConfig(vocab_size=9, width=64, depth=3), 100) == 3 * 100 * 2 * 64 * 4
    few = GPTConfig(vocab_size=9, width=64, depth=3, attention={"kind": "softmax", "heads": 4, "kv_heads": 1})
    assert table_bytes(few, 100) == 3 * 100 * 2 * 16 * 4
    linear = GPTConfig(vocab_size=9, width=64, depth=3, attention={"kind": "linear"})
    assert table_bytes(linear, 100) == table_bytes(linear, 10_000)
    assert table_bytes(make_small_config("bert"), 100) == 0
    assert table_bytes(make_small_config("lstm"), 100) == 2 * 2 * 64 * 4
    assert table_bytes(make_small_config("transformer", depth=1), 100) == 2 * 100 * 2 * 64 * 4


def test_seconds_of_a_step(monkeypatch):
    """By the time of this processor, which others on the machine do not change."""
    monkeypatch.setattr(seconds, "NOW", time.process_time)
    config, batch, length = GPTConfig(vocab_size=512, width=128, depth=3, max_length=64), 8, 64
    model = config.build().train()
    move = LEARNING.update(model)

    def step():
        began = time.process_time()
        model.example_loss(batch, length, make_numbers).backward()
        move()
        model.zero_grad()
        return time.process_time() - began

    step()
    ratios = []
    for _ in range(3):
        parts = seconds_of(config, Clock.calibrated(LEARNING.update), batch=batch, length=length, learning=LEARNING)
        ratios.append(sum(parts.values()) / sorted(step() for _ in range(5))[2])
    assert 0.7 < sorted(ratios)[1] < 1.3
    assert set(parts) >= {"feed-forward", "attention maps", "attention scores", "head", "optimizer", "norms"}


def test_a_large_step_is_measured_in_part(monkeypatch):
    """A part of the batch is measured, and each operation counts for as much as it is larger in the whole: by a clock
    that goes by the size of operations, both take the same."""
    config, clock = GPTConfig(vocab_size=256, width=64, depth=2, max_length=64), _SizedClock()
    whole = seconds_of(config, clock, batch=32, length=64, learning=LEARNING)
    largest = max(clock.known.values())
    clock.known.clear()
    monkeypatch.setattr(estimate, "LARGE", 1e7)
    part = seconds_of(config, clock, batch=32, length=64, learning=LEARNING)
    assert max(clock.known.values()) < 0.2 * largest
    assert part == pytest.approx(whole)


class _SizedClock(Clock):
    """Every operation takes as long as it is large."""

    def seconds(self, operation):
        return self.known.setdefault(operation, seconds.size_of(operation))


@pytest.mark.slow
def test_the_benchmark_of_all_three():
    lines = subprocess.run([sys.executable, str(BENCHMARK)], capture_output=True, text=True, check=True).stdout
    found = [json.loads(line) for line in lines.splitlines()]
    for kind, limit in (("flops", 0.01), ("memory", 0.25), ("seconds", 0.3)):
        some = [one for one in found if one["name"].startswith(f"inspect/{kind}/")]
        assert len(some) >= 5
        assert all(abs(one["ratio"] - 1) <= limit for one in some), some
