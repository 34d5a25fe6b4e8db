"""How good a run is: each task measures in its own way."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from weft.data import tokenise
from weft.errors import ConfigError
from weft.generation import Weights, packed
from weft.models.pictures import PictureConfig
from weft.tasks.evaluation import evaluate_text
from weft.tasks.sources import DataConfig, read_source

if TYPE_CHECKING:
    from weft.tasks.run import Run


def evaluate_run(run: Run, *data: str, weights: Weights = "float32") -> dict[str, Any]:
    """On what the run held out, its test if it has one, or on other data."""
    if run.task == "generate":
        return _evaluate_writing(run, *data, weights=weights)
    if weights != "float32":
        raise ConfigError(f"weights = {weights!r} for {run.task}", expected="float32")
    if run.task == "translate":
        from weft.tasks.translating import Translator

        return Translator(run).evaluate(*data)
    if run.task == "embed":
        return run.vectors.evaluate(*data)
    if isinstance(run.model_config, PictureConfig):
        from weft.tasks.classifying_pictures import PictureClassifier

        return PictureClassifier(run).evaluate(*data)
    if run.task == "classify":
        from weft.tasks.classifying import Classifier

        return Classifier(run).evaluate(*data)
    from weft.tasks.filling import evaluate_fill

    return evaluate_fill(run, *data)


def _evaluate_writing(run: Run, *data: str, weights: Weights) -> dict[str, Any]:
    """Nats per token and bits per byte."""
    source = read_source(DataConfig(train=data)) if data else run.source()
    corpus, measured_on = source.validation, "validation"
    if data:
        corpus, measured_on = type(corpus)(source.train.documents), "data"  # all of it, nothing held out
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
