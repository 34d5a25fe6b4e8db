"""How good a classifier is: metrics of one class, several or a number, and probabilities that mean what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from weft.blocks import length_buckets
from weft.data import Labels, class_weights
from weft.data.token_file import checksum
from weft.objectives import (
    accuracy,
    class_scores,
    confusion_matrix,
    exact_match,
    expected_calibration_error,
    fit_temperature,
    macro_f1,
    mean_squared_error,
    micro_f1,
    multilabel_macro_f1,
    multilabel_scores,
    negative_log_likelihood,
    pearson,
    spearman,
)
from weft.objectives.classification import class_logits
from weft.tasks.encoded import EncodedTexts

CALIBRATION_FILE = "calibration.json"
MAX_IMBALANCE = 10  # a class this many times as frequent as another: both are given the same weight
TOKENS_PER_ROW = 1024  # tokens in a row


@dataclass(frozen=True, eq=False)
class EvaluationSplit:
    """What is looked at, and the truth about it as `Labels.encode` gives it."""

    inputs: Any
    values: NDArray[Any]


def logits_of(model: nn.Module, texts: EncodedTexts, device: torch.device) -> NDArray[np.float64]:
    """(N, classes) in the order given; texts of similar length are read together."""
    model.eval()
    found: NDArray[np.float64] | None = None
    with torch.inference_mode():
        for places in length_buckets(texts.lengths.tolist(), TOKENS_PER_ROW):
            logits = class_logits(model, texts.row(places).to(device)).cpu().double().numpy()
            if found is None:
                found = np.empty((len(texts.ids), logits.shape[1]))
            found[places] = logits
    assert found is not None
    return found


def probabilities(logits: NDArray[np.float64], kind: str, temperature: float = 1.0) -> NDArray[np.float64]:
    """(N, classes): of one class in each row, or of each by itself."""
    scaled = logits / temperature
    if kind == "multilabel":
        return 0.5 * (1 + np.tanh(scaled / 2))
    scaled = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    return scaled / scaled.sum(axis=1, keepdims=True)


def weights_for(wanted: str, values: NDArray[Any], labels: Labels) -> list[float] | None:
    """One for each class, where they are wanted: "none", "balanced", or "auto", where some are rare."""
    if labels.kind != "single" or wanted == "none":
        return None
    counts = np.bincount(values, minlength=len(labels.classes))
    if wanted == "auto" and counts.max() < MAX_IMBALANCE * max(1, counts.min()):
        return None
    return class_weights(values, len(labels.classes)).tolist()


Read = Callable[[nn.Module, Any, torch.device], NDArray[np.float64]]


@dataclass
class Evaluator:
    """Measures a model whose labels are known; numbers come back from their deviation and mean.

    `read`: how the model's logits for the evaluated inputs are computed.
    """

    labels: Labels
    mean: float
    deviation: float
    device: torch.device
    temperature: float = 1.0
    read: Read = logits_of

    def fit_temperature(self, model: nn.Module, judged: EvaluationSplit) -> float:
        """What logits are divided by, fitted to examples that were not learned from; numbers have none."""
        if self.labels.kind == "regression":
            return 1.0
        return fit_temperature(self.read(model, judged.inputs, self.device), judged.values)

    def conclude(self, model: nn.Module, judged: EvaluationSplit, weights: Path) -> dict[str, Any]:
        """What is found out about the best weights: the files of the run by name."""
        self.temperature = self.fit_temperature(model, judged)
        return {CALIBRATION_FILE: {"temperature": self.temperature, "weights": checksum(weights)}}

    def measure(self, model: nn.Module, judged: EvaluationSplit, *, whole: bool = False) -> dict[str, Any]:
        """`validation_loss` decides which weights are best; `whole` adds what is too long for a log."""
        logits = self.read(model, judged.inputs, self.device)
        if self.labels.kind == "regression":
            return dict(self._of_numbers(logits, judged.values))
        found = dict(self._of_classes(logits, judged.values))
        if whole:
            found |= self._whole(logits, judged.values)
        return found

    def _of_numbers(self, logits: NDArray[np.float64], truth: NDArray[Any]) -> Iterator[tuple[str, float]]:
        told = logits[:, 0] * self.deviation + self.mean
        error = mean_squared_error(truth, told)
        yield "validation_loss", error / self.deviation**2
        yield "mean_squared_error", error
        yield "pearson", pearson(truth, told)
        yield "spearman", spearman(truth, told)

    def _of_classes(self, logits: NDArray[np.float64], truth: NDArray[Any]) -> Iterator[tuple[str, float]]:
        """The loss is that of the best temperature: how sure the model is will be corrected at the end anyway."""
        best = fit_temperature(logits, truth)
        yield "validation_loss", negative_log_likelihood(logits, truth, best)
        if self.labels.kind == "multilabel":
            told = (logits > 0).astype(np.float32)
            yield "micro_f1", micro_f1(truth, told)
            yield "macro_f1", multilabel_macro_f1(truth, told)
            yield "exact_match", exact_match(truth, told)
        else:
            told = logits.argmax(axis=1)
            yield "accuracy", accuracy(truth, told)
            yield "macro_f1", macro_f1(truth, told)

    def _whole(self, logits: NDArray[np.float64], truth: NDArray[Any]) -> dict[str, Any]:
        classes, kind = self.labels.classes, self.labels.kind
        chances = probabilities(logits, kind, self.temperature)
        found: dict[str, Any] = {
            "validation_loss": negative_log_likelihood(logits, truth, self.temperature),
            "calibration_error": expected_calibration_error(chances, truth),
        }
        if kind == "multilabel":
            scores = multilabel_scores(truth, (logits > 0).astype(np.float32))
        else:
            confusion = confusion_matrix(truth, logits.argmax(axis=1), len(classes))
            scores = class_scores(confusion)
            found["confusion"] = confusion.tolist()
        columns = (scores.precision, scores.recall, scores.f1, scores.support)
        found["classes"] = {
            name: {"precision": float(p), "recall": float(r), "f1": float(f), "examples": int(n)}
            for name, p, r, f, n in zip(classes, *columns, strict=True)
        }
        return found
