"""What `weft inspect` finds inside a model: softmax health, what a position can see, how gradients flow."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
from weft.analysis.model_reach import model_reach
from weft.analysis.reach import DIRECTIONS, Reach
from weft.blocks.residual import PostNorm, PreNorm
from weft.cost.flops import walk
from weft.errors import ConfigError, DataError, UnsupportedError
from weft.models import (
    BagOfWordsConfig,
    LanguageConfig,
    ModelConfig,
    NGramConfig,
    PairModelConfig,
    RecurrentConfig,
    RecurrentModel,
    Word2VecConfig,
)
from weft.models.pictures import PictureConfig
from weft.tasks.held_out import HeldOut
from weft.tasks.looking import check_has_attention, view_of
from weft.tasks.run import Run
from weft.tasks.task import find_task
from weft.tasks.watching import rounded

BY_GRADIENTS = 4e11  # operations for which gradients are measured too: some seconds
COUNTED = "By its order: how much of that was ever counted together is up to the text."
SHORT = 64  # tokens of a source and a target whose reach is asked for


def held_out_of(run: Run) -> HeldOut:
    """A few inputs that the run held out, read again from its data."""
    if run.is_imported:
        raise DataError(
            f"{run.directory.path} was not trained here: nothing was held out",
            expected="an input of yours",
            advice=f'weft inspect {run.directory.path} --health "a text"',
        )
    task = find_task(run.task, run.model_config.kind)
    return task.reopen(run.config, run.directory, lambda _: None).held_out()


def health_of(run: Run, given: str | Path | None = None) -> dict[str, Any]:
    """Softmax health on held-out input, or on one that is given; every number, and what stands out in sentences."""
    check_has_attention(run)
    if given is None:
        layers = softmax_health(held_out_of(run).looks(run.model))
    else:
        with capture(run.model) as maps:
            view_of(run, given)
        layers = softmax_health([maps])
    read = "a few held-out inputs" if given is None else "the input that was given"
    return rounded({"read": read, "sentences": health_sentences(layers), "layers": [x.to_dict() for x in layers]})


# -- reach ------------------------------------------------------------------------------------


def reach_of(config: ModelConfig, position: int | None, length: int, run: Run | None = None) -> Reach:
    """What the state at a position (None: the last of a model that writes, else the middle) can see after each layer.

    Predicted without any weights; measured with those of a run, or with random ones, if that takes only seconds.
    """
    if isinstance(config, NGramConfig):
        return _counted_reach(config, position, length)
    if isinstance(config, BagOfWordsConfig | Word2VecConfig):
        raise UnsupportedError(
            f"the reach of a {config.kind}, which has no layers and no places",
            expected="a model that reads texts or pictures in layers",
        )
    call, length = _calls(config, length)
    work = getattr(config, "depth", 1) * walk(config, batch=1, length=length).total.total  # back from each layer
    measure = DIRECTIONS * work < BY_GRADIENTS
    if position is None and _writes(config):
        position = -1
    model = config.skeleton() if not measure else _drawn(config) if run is None else run.model
    return model_reach(model, call, position, measure=measure)


def _writes(config: ModelConfig) -> bool:
    """Whether it goes from the first token to the last, and not over all of them."""
    if isinstance(config, RecurrentConfig):
        return not config.both_ways
    return isinstance(config, LanguageConfig | PairModelConfig)


def _counted_reach(config: NGramConfig, position: int | None, length: int) -> Reach:
    """A table of counts has one layer: the next token depends on the last order − 1."""
    at = length - 1 if position is None else position
    if not 0 <= at < length:
        raise ConfigError(f"position {position} of {length}", expected=f"from 0 to {length - 1}")
    places = np.arange(length)
    seen = (places <= at) & (places > at - (config.order - 1))
    return Reach(at, ("counts",), seen[None], note=COUNTED)


def _drawn(config: ModelConfig) -> nn.Module:
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
    if isinstance(config, PictureConfig):

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
        sides = [min(length, SHORT)] * 2
        vocabularies = [getattr(config, "source_vocab_size", None) or words, words]

    def read(model: nn.Module, seed: int) -> Any:
        chance = torch.Generator().manual_seed(seed)
        drawn = [torch.randint(v, (1, n), generator=chance) for v, n in zip(vocabularies, sides, strict=True)]
        reads = model.hidden if isinstance(model, RecurrentModel) else model  # it may have no head for the next token
        return reads(*(tokens.to(next(model.parameters()).device) for tokens in drawn))

    return read, sides[-1]


def reach_told(found: Reach) -> dict[str, Any]:
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
    """How the gradient of the loss on held-out input passes through the layers, now and at the start; and over the
    distance to what was read before, for a language model."""
    held_out = held_out_of(run)
    if not held_out.batches:
        raise UnsupportedError(
            f"{run.directory.path} is a {run.model_config.kind}: it does not learn by gradients through layers",
            expected="a model with layers",
        )

    def loss(model: nn.Module) -> Tensor:
        parts = [held_out.loss(model, batch)[:2] for batch in held_out.batches]
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
    if isinstance(run.model_config, LanguageConfig):
        tokens = torch.cat(list(held_out.batches))
        found["distance"] = gradient_of_loss_by_distance(run.model, tokens).tolist()
    return _without_nan(rounded(found))


def norm_of(model: nn.Module) -> str | None:
    """Where the norms of its layers stand."""
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
