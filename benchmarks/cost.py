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
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from cost_setup import FAMILIES, counted, numbers, small, usual_length
from weft.cost.estimate import memory_of, seconds_of
from weft.cost.flops import walk
from weft.cost.seconds import Clock
from weft.cost.step import step_loss
from weft.models import ModelConfig
from weft.tasks.environment import memory_in_use
from weft.tasks.inspected import learning_of, process_memory
from weft.training import TrainingConfig
from weft.training.allocation import keep_freed_memory

TRAINING = TrainingConfig(steps=1, batch=1)
LEARNING = learning_of(TRAINING)
STEPS, ROUNDS, FRESH = 7, 3, 3
CASES: dict[str, tuple[dict[str, Any], int, int]] = {  # the model, batch, length
    "gpt": ({"kind": "gpt", "vocab_size": 8192, "depth": 6}, 16, 256),
    "bert": ({"kind": "bert", "vocab_size": 8192}, 16, 128),
    "transformer": ({"kind": "transformer", "vocab_size": 8192}, 16, 64),
    "vit": ({"kind": "vit", "width": 192, "depth": 6, "head": {"classes": 10}}, 64, 32),
    "lstm": ({"kind": "lstm", "vocab_size": 8192, "width": 512}, 32, 128),
    "resnet": ({"kind": "resnet", "head": {"classes": 10}}, 32, 32),
    "gru": ({"kind": "gru", "vocab_size": 8192}, 16, 64),
}


def say(name: str, ours: float, peer: float) -> None:
    """One comparison."""
    print(
        json.dumps({"name": f"inspect/{name}", "ours": ours, "peer": peer, "ratio": ours / peer if peer else 1.0}),
        flush=True,
    )


def flops() -> None:
    """Every family of the menu, forward and backward."""
    for family in FAMILIES:
        config = small(family)
        found, real = walk(config, batch=2, length=usual_length(config)).total, counted(config, 2, usual_length(config))
        say(f"flops/{family}/forward", found.forward, real[0])
        say(f"flops/{family}/backward", found.backward, real[1])


def memory() -> None:
    """The middle of a few fresh processes."""
    for name, (fields, batch, length) in CASES.items():
        command = [sys.executable, __file__, "--peak", name]
        told = [
            json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(FRESH)
        ]
        process = int(statistics.median(one["process"] for one in told))
        config = ModelConfig.pick(fields)
        ours = memory_of(config, batch=batch, length=length, learning=LEARNING, process=process).total
        say(f"memory/{name}", ours, statistics.median(one["peak"] for one in told))


def peak(name: str) -> None:
    """A few real steps, and the most memory that this process had; what it had before the model, too."""
    import resource

    keep_freed_memory()
    fields, batch, length = CASES[name]
    before = process_memory(TRAINING)
    config = ModelConfig.pick(fields)
    model = config.build().train()
    move = LEARNING.update(model)
    for _ in range(STEPS):
        torch.autograd.backward(step_loss(config, model, numbers, batch, length))
        move()
        model.zero_grad()
    print(json.dumps({"process": before, "peak": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))


def seconds() -> None:
    """Predicted and measured by turns."""
    keep_freed_memory()
    for name, (fields, batch, length) in CASES.items():
        config = ModelConfig.pick(fields)
        model = config.build().train()
        move = LEARNING.update(model)
        ours, real = [], []
        for _ in range(ROUNDS):
            clock = Clock.calibrated(LEARNING.update)
            ours.append(sum(seconds_of(config, clock, batch=batch, length=length, learning=LEARNING).values()))
            for _ in range(1 + STEPS):
                began = time.perf_counter()
                torch.autograd.backward(step_loss(config, model, numbers, batch, length))
                move()
                model.zero_grad()
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
