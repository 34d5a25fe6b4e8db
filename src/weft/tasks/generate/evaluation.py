"""How well a language model predicts a text: nats per token, and bits per byte, which compare across
tokenizers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from weft.data import Sweep, TokenFile, tokenise
from weft.generation import Weights, packed
from weft.objectives import causal_loss
from weft.tasks.sources import DataConfig, read_source
from weft.training import ALONE, Ranks

if TYPE_CHECKING:
    from weft.tasks.run import Run


@runtime_checkable
class ReadsThrough(Protocol):
    """A model that evaluates a text as a whole, because it has a recurrent state or looks each token up."""

    def text_nats(self, ids: NDArray[np.integer[Any]]) -> float:
        """The summed negative log-probability of every token but the first, each after all that come before it."""
        ...


def evaluate_text(
    model: nn.Module, tokens: TokenFile, length: int, *, device: torch.device, ranks: Ranks = ALONE, rows: int = 0
) -> dict[str, float]:
    """Every token of the text but the first is predicted once: in windows of `length`, the work shared between ranks,
    or by a model that reads through."""
    model.eval()
    with torch.no_grad():
        if isinstance(model, ReadsThrough):
            total, count = model.text_nats(tokens.ids), len(tokens) - 1
        else:
            total, count = _in_windows(model, tokens, length, device, ranks, rows or max(1, 4096 // length))
    return {"validation_loss": total / count, "bits_per_byte": total / math.log(2) / max(1, tokens.bytes)}


def evaluate_run(run: Run, *data: str, weights: Weights) -> dict[str, Any]:
    """Nats per token and bits per byte on a run's test text, else its validation text, or on other text."""
    source = read_source(DataConfig(train=data)) if data else run.source()
    corpus, measured_on = source.validation, "validation"
    if data:
        corpus, measured_on = type(corpus)(source.train.documents), "data"  # all of it, without a validation part
    elif source.test is not None:
        corpus, measured_on = source.test, "test"
    tokens = tokenise(corpus, run.tokenizer, None)
    model = run.model if weights == "float32" else packed(run.model, weights)
    metrics = evaluate_text(model, tokens, run.context, device=run.device)
    impossible = metrics["validation_loss"] == math.inf  # for some token; JSON has no word for an infinite loss
    return {
        "loss": None if impossible else metrics["validation_loss"],
        "bits_per_byte": None if impossible else metrics["bits_per_byte"],
        "tokens": len(tokens),
        "measured_on": measured_on,
    }


def _in_windows(
    model: nn.Module, tokens: TokenFile, length: int, device: torch.device, ranks: Ranks, rows: int
) -> tuple[float, int]:
    sums = torch.zeros(2, dtype=torch.float64)
    for windows in Sweep(tokens, length, rows)[ranks.rank :: ranks.world]:
        summed, count = causal_loss(model, torch.from_numpy(windows).to(device))
        sums += torch.tensor([summed.item(), count], dtype=torch.float64)
    ranks.sum([sums])
    return float(sums[0]), int(sums[1])
