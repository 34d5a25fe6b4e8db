"""What `weft inspect` finds inside a model: softmax health, what a position can see, how gradients flow."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from weft.analysis import (
    capture,
    gradient_of_loss_by_distance,
    gradient_through_depth,
    health_sentences,
    softmax_health,
)
from weft.analysis.model_reach import model_reach, reach_as_said
from weft.analysis.reach import DIRECTIONS, Reach
from weft.blocks.residual import PostNorm, PreNorm
from weft.cost import cost_of
from weft.errors import DataError, UnsupportedError
from weft.models import CausalLM, ModelConfig, PairModelConfig
from weft.models.base import Model
from weft.models.images import ImageConfig
from weft.tasks.attention_view.view import check_has_attention, view_of
from weft.tasks.experiment import Origin
from weft.tasks.run import Run
from weft.tasks.task import find_task
from weft.tasks.validation_inputs import ValidationInputs
from weft.tasks.watching import rounded

MAX_GRADIENT_OPERATIONS = 4e11  # operations for which gradients are measured too: some seconds
MAX_PAIR_TOKENS = 64  # tokens of a source and a target whose reach is measured


def validation_inputs_of(run: Run) -> ValidationInputs:
    """A few validation inputs of the run, read again from its data."""
    if run.is_imported:
        raise DataError(
            f"{run.directory.path} was not trained here: it has no validation data",
            expected="an input of yours",
            advice=f'weft inspect {run.directory.path} --health "a text"',
        )
    task = find_task(run.task, run.model_config.kind)
    return task.reopen(run.config, Origin(run=run.directory)).validation_inputs()


def health_of(run: Run, given: str | Path | None = None) -> dict[str, Any]:
    """Softmax health on validation input, or on one that is given; every number, and what stands out in sentences."""
    check_has_attention(run)
    if given is None:
        layers = softmax_health(validation_inputs_of(run).looks(run.model))
    else:
        with capture(run.model) as maps:
            view_of(run, given)
        layers = softmax_health([maps])
    read = "a few validation inputs" if given is None else "the input that was given"
    return rounded({"read": read, "sentences": health_sentences(layers), "layers": [x.to_dict() for x in layers]})


# -- reach ------------------------------------------------------------------------------------


def reach_of(config: ModelConfig, position: int | None, length: int, run: Run | None = None) -> Reach:
    """What the state at a position (None: the last of a model that writes, else the middle) can see after each layer.

    Predicted without any weights; measured with those of a run, or with random ones, if that takes only seconds.
    """
    if not config.learned_in_steps:
        return reach_as_said(config.build(), length, position)
    skeleton = config.skeleton()
    skeleton.reach_stacks()  # refuses, if it has none
    call, length = _calls(config, length)
    work = getattr(config, "depth", 1) * cost_of(config, batch=1, length=length).flops  # back from each layer
    measure = DIRECTIONS * work < MAX_GRADIENT_OPERATIONS
    model = skeleton if not measure else _drawn(config) if run is None else cast(Model, run.model)
    return model_reach(model, call, position, measure=measure)


def _drawn(config: ModelConfig) -> Model:
    """Fresh weights, and none of them zero: branches that give nothing at the start would see nothing."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        model = config.build()
        for p in model.parameters():
            if not p.any():
                p.normal_(std=0.02 if p.dim() < 2 else p[0].numel() ** -0.5)
    return model


def _calls(config: ModelConfig, length: int) -> tuple[Callable[[nn.Module, int], Any], int]:
    """What runs a model on random input, and how long a text, or how many rows, that input is."""
    if isinstance(config, ImageConfig):

        def look(model: nn.Module, seed: int) -> Any:
            chance = torch.Generator().manual_seed(seed)
            pixels = torch.randn(1, config.channels, length, length, generator=chance)
            return model(pixels.to(next(model.parameters())))

        return look, length
    words: int = config.vocab_size  # type: ignore[attr-defined]
    length = min(length, getattr(config, "max_length", None) or length)
    sides = [length]
    vocabularies = [words]
    if isinstance(config, PairModelConfig):
        sides = [min(length, MAX_PAIR_TOKENS)] * 2
        vocabularies = [getattr(config, "source_vocab_size", None) or words, words]

    def read(model: nn.Module, seed: int) -> Any:
        chance = torch.Generator().manual_seed(seed)
        drawn = [torch.randint(v, (1, n), generator=chance) for v, n in zip(vocabularies, sides, strict=True)]
        reads = getattr(model, "hidden", model)  # no layer needs what the head says
        return reads(*(tokens.to(next(model.parameters()).device) for tokens in drawn))

    return read, sides[-1]


def convert_reach(found: Reach) -> dict[str, Any]:
    """For programs: rows as strings, 1 is seen."""

    def rows(table: np.ndarray | None) -> list[str] | None:
        return None if table is None else ["".join("01"[int(cell)] for cell in row) for row in table]

    grid = None if found.grid is None else [found.grid.rows, found.grid.columns]
    return {
        "position": found.position,
        "inputs": int(found.predicted.shape[1]),
        "sources": found.sources,
        "grid": grid,
        "layers": list(found.layers),
        "note": found.note,
        "seen": found.counts,
        "predicted": rows(found.predicted),
        "measured": rows(found.measured),
        "agrees": found.agrees,
    }


# -- gradients --------------------------------------------------------------------------------


def flow_of(run: Run) -> dict[str, Any]:
    """How the gradient of the loss on validation input passes through the layers, now and at the start; and over the
    distance to what was read before, for a language model."""
    validation = validation_inputs_of(run)
    if not validation.batches:
        raise UnsupportedError(
            f"{run.directory.path} is a {run.model_config.kind}: it does not learn by gradients through layers",
            expected="a model with layers",
        )

    def loss(model: nn.Module) -> Tensor:
        parts = [validation.loss(model, batch)[:2] for batch in validation.batches]
        total: Tensor = sum(summed for summed, _ in parts) / max(1, sum(count for _, count in parts))
        return total

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.config.training.seed)
        fresh = run.model_config.build().eval()
    now, start = (
        [flow.to_dict() for flow in gradient_through_depth(model.requires_grad_(), loss)]
        for model in (run.model, fresh)
    )
    found: dict[str, Any] = {"norm": norm_of(run.model), "now": now, "start": start}
    if CausalLM in run.model_config.provides:
        tokens = torch.cat(list(validation.batches))
        found["distance"] = gradient_of_loss_by_distance(run.model, tokens).tolist()
    return _without_nan(rounded(found))


def norm_of(model: nn.Module) -> str | None:
    """Where its normalisation layers are."""
    for module in model.modules():
        if isinstance(module, PreNorm | PostNorm):
            return "pre" if isinstance(module, PreNorm) else "post"
    return None


def _without_nan(table: Any) -> Any:
    if isinstance(table, dict):
        return {name: _without_nan(value) for name, value in table.items()}
    if isinstance(table, list):
        return [_without_nan(value) for value in table]
    return None if isinstance(table, float) and not math.isfinite(table) else table
