"""What `weft inspect` predicts against what is then counted and measured: operations, memory and seconds of a step.

    python benchmarks/cost.py [flops] [memory] [seconds]

One line each: `ours` is predicted, `peer` counted or measured, `ratio` predicted / measured (1 is right). Operations
are counted by torch with the plain kernels; memory is the peak of a fresh process that does a few steps; seconds are
the median of steps between which the prediction is made anew. Measure while nothing else runs.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from fixtures.operations import LEARNED_FAMILIES, count_operations, make_numbers, make_small_config, usual_length
from weft.cost.estimate import memory_of, seconds_of
from weft.cost.flops import walk
from weft.cost.learning import Learning
from weft.cost.seconds import Clock
from weft.models import ModelConfig
from weft.tasks.environment import memory_in_use
from weft.tasks.inspection import process_memory
from weft.training import TrainingConfig
from weft.training.allocation import keep_freed_memory
from weft.training.step_cost import learning_of

STEPS, ROUNDS, FRESH = 7, 3, 3


@dataclass(frozen=True)
class Case:
    """A model and a step of it; `training`: what is not as usual."""

    model: dict[str, Any]
    batch: int
    length: int
    training: dict[str, Any] = field(default_factory=dict)

    @property
    def config(self) -> ModelConfig:
        return ModelConfig.from_config(self.model)

    @property
    def learning(self) -> Learning:
        return learning_of(TrainingConfig(steps=1, batch=self.batch, **self.training))

    def steps(self) -> Callable[[], None]:
        """What does a real step, as a training does."""
        config, learning = self.config, self.learning
        model = learning.ready(config.build())
        assert learning.update is not None
        move = learning.update(model)

        def step() -> None:
            for begin in range(0, self.batch, learning.part(self.batch)):
                size = min(learning.part(self.batch), self.batch - begin)
                with torch.autocast("cpu", torch.bfloat16, enabled=learning.bf16):
                    loss = model.example_loss(size, self.length, make_numbers)
                torch.autograd.backward(loss)
            move()
            model.zero_grad()

        return step


GPT = {"kind": "gpt", "vocab_size": 8192, "depth": 6}
CASES = {
    "gpt": Case(GPT, 16, 256),
    "bert": Case({"kind": "bert", "vocab_size": 8192}, 16, 128),
    "transformer": Case({"kind": "transformer", "vocab_size": 8192}, 16, 64),
    "vit": Case({"kind": "vit", "width": 192, "depth": 6, "head": {"classes": 10}}, 64, 32),
    "lstm": Case({"kind": "lstm", "vocab_size": 8192, "width": 512}, 32, 128),
    "resnet": Case({"kind": "resnet", "head": {"classes": 10}}, 32, 32),
    "gru": Case({"kind": "gru", "vocab_size": 8192}, 16, 64),
    "gpt-long": Case({"kind": "gpt", "vocab_size": 512, "width": 256, "depth": 3}, 2, 2048),
    "gpt-local": Case(GPT | {"attention": {"kind": "local", "window": 64}}, 4, 1024),
    "gpt-adamw": Case(GPT | {"width": 384}, 8, 128, {"optimizer": {"kind": "adamw"}}),
    "gpt-parts": Case(GPT, 32, 256, {"micro_batch": 8}),
    "gpt-frozen": Case(GPT, 16, 256, {"freeze": 4}),
    "gpt-bf16": Case(GPT | {"width": 384}, 16, 256, {"precision": "bf16"}),
    "t5": Case({"kind": "t5", "vocab_size": 4096, "width": 192, "depth": 4}, 16, 96),
    "convnext": Case({"kind": "convnext", "head": {"classes": 10}}, 32, 32),
    "davit": Case({"kind": "davit", "head": {"classes": 10}}, 32, 32),
    "bahdanau": Case({"kind": "bahdanau", "vocab_size": 4096}, 32, 30),
}


def say(name: str, ours: float, peer: float) -> None:
    """One comparison."""
    print(
        json.dumps({"name": f"inspect/{name}", "ours": ours, "peer": peer, "ratio": ours / peer if peer else 1.0}),
        flush=True,
    )


def flops() -> None:
    """Every family of the registry, forward and backward."""
    for family in LEARNED_FAMILIES:
        config = make_small_config(family)
        found, real = (
            walk(config, batch=2, length=usual_length(config)).total,
            count_operations(config, 2, usual_length(config)),
        )
        say(f"flops/{family}/forward", found.forward, real[0])
        say(f"flops/{family}/backward", found.backward, real[1])


def memory() -> None:
    """The middle of a few fresh processes."""
    for name, case in CASES.items():
        command = [sys.executable, __file__, "--peak", name]
        told = [
            json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(FRESH)
        ]
        process = int(statistics.median(one["process"] for one in told))
        asked: dict[str, Any] = {"batch": case.batch, "length": case.length, "learning": case.learning}
        ours = memory_of(case.config, process=process, **asked).total
        say(f"memory/{name}", ours, statistics.median(one["peak"] for one in told))


def peak(name: str) -> None:
    """A few real steps, and the most memory that this process had; what it had before the model, too."""
    import resource

    keep_freed_memory()
    before = process_memory(TrainingConfig(steps=1, batch=1))
    step = CASES[name].steps()
    for _ in range(STEPS):
        step()
    print(json.dumps({"process": before, "peak": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))


def seconds() -> None:
    """Predicted and measured by turns."""
    keep_freed_memory()
    for name, case in CASES.items():
        step, learning = case.steps(), case.learning
        assert learning.update is not None
        asked: dict[str, Any] = {"batch": case.batch, "length": case.length, "learning": learning}
        ours, real = [], []
        for _ in range(ROUNDS):
            clock = Clock.calibrated(learning.update)
            ours.append(sum(seconds_of(case.config, clock, **asked).values()))
            for _ in range(1 + STEPS):
                began = time.perf_counter()
                step()
                real.append(time.perf_counter() - began)
            del real[-1 - STEPS]  # the first after other work
        say(f"seconds/{name}", statistics.median(ours), statistics.median(real))


if __name__ == "__main__":
    assert memory_in_use() >= 0
    if sys.argv[1:2] == ["--peak"]:
        peak(sys.argv[2])
    else:
        for part in sys.argv[1:] or ["flops", "memory", "seconds"]:
            {"flops": flops, "memory": memory, "seconds": seconds}[part]()
