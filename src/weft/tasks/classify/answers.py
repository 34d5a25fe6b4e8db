"""What a classifier says, of whatever it looks at: classes with probabilities that mean what they say, or a number."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import nn

from weft.checkpoints.files import read_json
from weft.data import Labels
from weft.data.token_file import checksum
from weft.errors import DataError
from weft.models.classes import Classes
from weft.tasks.classify.evaluator import CALIBRATION_FILE, probabilities


@dataclass(frozen=True)
class Answer:
    """What the model says of one text.

    label           a class, the list of labels that are likelier than not, or a number
    probability     of the class; None for a number or several labels
    probabilities   of all classes, the likeliest first
    """

    label: str | list[str] | float
    probability: float | None
    probabilities: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        told: dict[str, Any] = {"label": self.label}
        if self.probability is not None:
            told["probability"] = self.probability
        return told | ({"probabilities": self.probabilities} if self.probabilities else {})


def labels_of(head: Classes, separator: str = "") -> Labels:
    """The classes of a model by name; a stranger's may have numbers only."""
    if head.classes == 1 and not head.multilabel:
        return Labels("regression")
    names = head.labels or tuple(map(str, range(head.classes)))
    return Labels("multilabel" if head.multilabel else "single", names, separator)


def answers_of(logits: NDArray[np.float64], labels: Labels) -> list[Answer]:
    """One for each row."""
    if labels.kind == "regression":
        return [Answer(float(value), None, {}) for value in logits[:, 0]]
    return [_answer(row, labels) for row in probabilities(logits, labels.kind)]


def _answer(row: NDArray[np.float64], labels: Labels) -> Answer:
    names = labels.classes
    order = np.argsort(-row, kind="stable")
    chances = {names[place]: float(row[place]) for place in order}
    if labels.kind == "multilabel":
        return Answer([name for name, chance in chances.items() if chance > 0.5], None, chances)
    best = names[order[0]]
    return Answer(best, chances[best], chances)


class LabelStatistics(Protocol):
    """What was found out about the labels of the data that a run learned from."""

    @property
    def kind(self) -> str | None: ...
    @property
    def mean(self) -> float: ...
    @property
    def deviation(self) -> float: ...


def as_used(model: nn.Module, run: Path, data: LabelStatistics) -> nn.Module:
    """The trained model with its last map taking up what belongs to its answers, so that whoever has it needs no more.

    Numbers come out as they are in the table, not by their deviation from the mean; logits are divided by the
    temperature, so that their softmax is a probability that means what it says.
    """
    last = list(model.classes.children())[-1]  # type: ignore[union-attr]
    assert isinstance(last, nn.Linear)
    scale, shift = (
        (data.deviation, data.mean) if data.kind == "regression" else (1 / _temperature(run / CALIBRATION_FILE), 0.0)
    )
    last.weight.data.mul_(scale)
    last.bias.data.mul_(scale).add_(shift)
    return model


def _temperature(path: Path) -> float:
    """1 until training is over, and again while a finished run is trained further: it belongs to its weights alone."""
    if not path.exists():
        return 1.0
    found = read_json(path)
    if isinstance(found, dict) and found.get("weights") not in (None, checksum(path.with_name("model.safetensors"))):
        return 1.0
    value = found.get("temperature") if isinstance(found, dict) else None
    if isinstance(value, bool) or not isinstance(value, float | int) or not 0 < value < 1000:
        raise DataError(f"{path}: temperature = {value!r}", expected="a number above 0")
    return float(value)
