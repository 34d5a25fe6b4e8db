"""Choosing a model size, a batch and a number of steps for this data, this time and this machine.

The ladder below was measured (docs/decisions/004-default-gpt.md): for a given amount of computing, the
size that reached the lowest held-out loss on texts of about a megabyte. What a user sets is kept; the
rest follows.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from weft.cost import cost_of
from weft.data import Windows
from weft.models import GPTConfig, ModelConfig, preset
from weft.objectives import causal_loss
from weft.tasks.environment import memory_free, memory_in_use
from weft.tasks.preparation import GenerateConfig, Prepared, Texts
from weft.tasks.request import Request
from weft.tasks.start import LENGTH, OPTIMIZER, WARMUP, Start
from weft.text import TokenizerConfig
from weft.training import ALONE, Ranks, TrainingConfig
from weft.training.freezing import freeze
from weft.training.precision import bf16_pays

LONGEST = 5.0  # seconds that measuring steps may take


@dataclass(frozen=True)
class Rung:
    """A size that suits up to `flops` operations of training."""

    flops: float
    width: int
    depth: int
    heads: int
    length: int
    batch: int


LADDER = (
    Rung(4e12, 128, 3, 4, 64, 12),
    Rung(2e13, 128, 4, 4, 128, 12),
    Rung(8e13, 192, 5, 6, 128, 16),
    Rung(3e14, 256, 6, 8, 256, 8),
    Rung(3e15, 384, 6, 6, 256, 16),
    Rung(1e30, 512, 8, 8, 512, 16),
)


def rung_for(flops: float) -> Rung:
    """The size for this much computing."""
    return next(rung for rung in LADDER if flops <= rung.flops)


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


def seconds_per_step(config: GPTConfig, training: TrainingConfig, batch: Callable[[np.ndarray], Tensor]) -> float:
    """Measured on a scratch model, which is thrown away: the median of a few steps after a warm-up, of fewer if
    they are long."""
    state = torch.get_rng_state()
    model = config.build()
    freeze(model, training.freeze)
    rule, size = training.optimizer.build(model), training.batch
    times: list[float] = []
    while len(times) < 7 and (len(times) < 3 or sum(times) < LONGEST):
        began = time.perf_counter()
        summed, count = causal_loss(model, batch(np.arange(size) + len(times) * size))
        torch.autograd.backward(summed / count)
        rule.step()
        rule.zero_grad()
        times.append(time.perf_counter() - began)
    torch.set_rng_state(state)
    return statistics.median(times[2:])


def seconds_to_evaluate(config: GPTConfig, tokens: int, speed: float) -> float:
    """Forward alone is a third of a step; shapes are large, so the speed is that of plain products."""
    cost = cost_of(config, batch=1, length=config.max_length)
    return tokens * cost.flops / cost.tokens / 3 / speed


def warnings(plan: dict[str, Any]) -> list[str]:
    """What a plan in numbers already tells about the result."""
    told = []
    if plan["tokens"] < 10_000:
        told.append(f"{plan['tokens']:,} tokens are very little to learn from: expect babble")
    if plan["epochs"] > 10:
        told.append("the text will be read more than ten times: expect it to be learned by heart")
    return told


def plan(
    request: Request,
    texts: Texts,
    tokenizer_config: TokenizerConfig | None,
    start: Start | None = None,
    ranks: Ranks = ALONE,
) -> GenerateConfig:
    """Sizes by the ladder or by where it starts, what the user set on top, then the number of steps by measuring."""
    device = torch.device(request.device)
    minutes = request.minutes if request.steps or request.epochs or request.minutes else 5.0
    speed = machine_speed()
    rung = rung_for(speed * 60 * (minutes or 5.0))
    data = texts.source.config
    if start is None:
        family, fields = preset(request.model)
        sizes = {"width": rung.width, "depth": rung.depth, "max_length": rung.length, "attention.heads": rung.heads}
        model = ModelConfig.pick({"kind": family, **fields, "vocab_size": texts.tokenizer.vocab_size})
        model = request.apply("model", model.override({} if fields else sizes))
    else:
        model = request.apply("model", start.model)
        start.build(model)  # refuses settings that its weights do not fit
        data = data.override({"length": data.length or LENGTH})
    assert isinstance(model, GPTConfig)
    batch = max(1, rung.batch * rung.length // min(model.max_length, data.length or model.max_length))
    training = TrainingConfig(
        steps=request.steps or 1,
        batch=batch,
        seed=request.seed,
        threads=request.threads or os.cpu_count() or 1,
        device=request.device,
        minutes=minutes,
        precision="bf16" if ranks.agree(bf16_pays(device), device) else "float32",
    )
    if start is not None:
        training = training.override({"optimizer": OPTIMIZER, "warmup": WARMUP})
    training = _sharded_if_needed(request.training_config(training), model, ranks)
    freeze(model.skeleton(), training.freeze)  # refuses more layers than there are
    config = GenerateConfig(model=model, tokenizer=tokenizer_config, data=data, training=training, start=request.start)
    prepared = Prepared(config, texts)
    if request.epochs is not None:
        per_epoch = Windows(texts.train, prepared.length, 0).per_epoch
        training = training.override({"steps": max(1, round(request.epochs * per_epoch / training.batch))})
    elif minutes is not None:
        each = seconds_per_step(model, training, prepared.samples())
        left = request.started + 60 * minutes - time.perf_counter()
        left -= seconds_to_evaluate(model, texts.judged, speed)
        steps = max(1, int(ranks.agree(left / each, device)))
        training = training.override({"steps": steps})
        if not training.checkpoint_every and minutes > 1:
            training = training.override({"checkpoint_every": max(1, round(30 / each))})
    return GenerateConfig.from_dict(config._fields() | {"training": training})


def _sharded_if_needed(training: TrainingConfig, model: ModelConfig, ranks: Ranks) -> TrainingConfig:
    """Divide the parameters among the processes when each could not hold them all."""
    if ranks.world == 1 or training.sharded or not isinstance(model, GPTConfig):
        return training
    needed = cost_of(model, batch=max(1, training.batch // ranks.world), length=model.max_length).memory
    if needed < memory_free(training.device) / (1 if training.device != "cpu" else ranks.world):
        return training
    return training.override({"optimizer.kind": "adamw", "sharded": True})


def describe(prepared: Prepared) -> dict[str, Any]:
    """The plan in numbers, for people and programs."""
    config, texts, training = prepared.config, prepared.texts, prepared.config.training
    assert isinstance(config.model, GPTConfig)
    cost = cost_of(config.model, batch=training.batch, length=prepared.length)
    return {
        "characters": config.data.characters,
        "tokens": len(texts.train),
        "validation_tokens": len(texts.validation),
        **({} if texts.test is None else {"test_tokens": len(texts.test)}),
        "tokenizer": texts.tokenizer.kind,
        "vocab_size": texts.tokenizer.vocab_size,
        "width": config.model.width,
        "depth": config.model.depth,
        "length": prepared.length,
        **({} if config.start is None else {"start": config.start}),
        "parameters": cost.parameters,
        "memory": memory_in_use() + cost.memory,
        "steps": training.steps,
        "batch": training.batch,
        "epochs": round(training.steps * training.batch * prepared.length / len(texts.train), 2),
        "minutes": training.minutes,
    }
