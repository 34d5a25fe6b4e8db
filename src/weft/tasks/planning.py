"""Planning for this machine and this time: how fast it is, how many steps there are, how they are cut.

What a user sets is kept; everything else is derived from it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from weft.cost import cost_of
from weft.models import CausalLM, ModelConfig
from weft.models.base import Model
from weft.tasks.environment import memory_free, usual_threads
from weft.tasks.request import Request
from weft.training import Ranks, TrainingConfig
from weft.training.freezing import freeze
from weft.training.precision import bf16_pays
from weft.training.step_cost import learning_of

MAX_MEASURING_SECONDS = 5.0  # seconds that measuring steps may take


def machine_speed() -> float:
    """Operations a second that training reaches here: half of what a plain matrix product does."""
    a, b = torch.randn(512, 256), torch.randn(256, 512)
    best = min(_seconds(lambda: a @ b, 20) for _ in range(3))
    return 0.5 * 2 * 512 * 256 * 512 / best


def _seconds(work: Callable[[], Any], repeats: int) -> float:
    began = time.perf_counter()
    for _ in range(repeats):
        work()
    return (time.perf_counter() - began) / repeats


def seconds_per_step(
    model: Model, training: TrainingConfig, samples: Callable[[np.ndarray], Any], loss: Callable[..., Any]
) -> float:
    """Measured on a scratch model, which is thrown away: the median of a few steps after a warm-up, of fewer if
    they are long."""
    state = torch.get_rng_state()
    model.to(training.device).train()
    freeze(model, training.freeze)
    rule, size = training.optimizer.build(model), training.batch
    times: list[float] = []
    while len(times) < 7 and (len(times) < 3 or sum(times) < MAX_MEASURING_SECONDS):
        began = time.perf_counter()
        summed, count, *_ = loss(model, samples(np.arange(size) + len(times) * size).to(training.device))
        torch.autograd.backward(summed / count)
        rule.step()
        rule.zero_grad()
        times.append(time.perf_counter() - began)
    torch.set_rng_state(state)
    return statistics.median(times[2:])


def first_training(
    request: Request, batch: int, ranks: Ranks, minutes: float | None, planned: Mapping[str, Any]
) -> TrainingConfig:
    """How training is done before the number of its steps is known: the plan, with what the user set on top."""
    device = torch.device(request.device)
    training = TrainingConfig(
        steps=request.steps or 1,
        batch=batch,
        seed=request.seed,
        threads=request.threads or usual_threads(),
        device=request.device,
        minutes=minutes,
        precision="bf16" if ranks.agree(bf16_pays(device), device) else "float32",
    )
    return request.training_config(training.override(planned))


@dataclass(frozen=True)
class Pieces:
    """What the number of steps follows from.

    per_epoch    samples in one reading of the data
    epochs       readings when the user says nothing; with `minutes`, at most so many (None: as many as there is time)
    each, end    seconds of a step, and of measuring when training is over
    """

    per_epoch: int
    each: Callable[[], float]
    end: Callable[[], float]
    epochs: float | None = None


def with_steps(training: TrainingConfig, request: Request, pieces: Pieces, ranks: Ranks) -> TrainingConfig:
    """The number of steps: as given, by epochs, or as many as the time allows."""
    if request.steps is not None:
        return training
    device, minutes = torch.device(training.device), training.minutes
    epochs = request.epochs if request.epochs is not None else pieces.epochs
    most = None if epochs is None else max(1, round(epochs * pieces.per_epoch / training.batch))
    if request.epochs is not None or minutes is None:
        assert most is not None
        return training.override({"steps": most})
    each = ranks.agree(pieces.each(), device)
    left = request.started + 60 * minutes - time.perf_counter() - pieces.end()
    steps = max(1, int(ranks.agree(left / each, device)))
    if most is not None and most <= steps:  # there is time for all: no need to watch the clock
        return training.override({"steps": most, "minutes": None})
    training = training.override({"steps": steps})
    if not training.checkpoint_every and minutes > 1:
        training = training.override({"checkpoint_every": max(1, round(30 / each))})
    return training


def sharded_if_needed(training: TrainingConfig, model: ModelConfig, ranks: Ranks) -> TrainingConfig:
    """Divide the parameters among the processes when each could not hold them all."""
    if ranks.world == 1 or training.sharded or CausalLM not in model.provides or model.context is None:
        return training
    each = max(1, training.batch // ranks.world)
    cost = cost_of(model, batch=each, length=model.context, learning=learning_of(training))
    if cost.memory().total < memory_free(training.device) / (1 if training.device != "cpu" else ranks.world):
        return training
    return training.override({"optimizer.kind": "adamw", "sharded": True})
