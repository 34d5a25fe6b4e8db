"""`--watch`: the softmax health of a model while it learns, at the start and at every evaluation.

It is measured on a few validation inputs, always the same. Training does not notice: the weights, the modes of the
modules and the random state are as they were, and what was found goes to a file of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from torch import nn

from weft.analysis import health_sentences, softmax_health
from weft.checkpoints import RunDirectory
from weft.checkpoints.files import read_lines, write_text
from weft.tasks.recording import Report
from weft.tasks.validation_inputs import ValidationInputs

HEALTH_FILE = "health.jsonl"


class SoftmaxHealthLog:
    """Looks at the model when it is asked to, tells `report`, and writes a line for each step into health.jsonl."""

    def __init__(self, run: RunDirectory, validation_inputs: Callable[[], ValidationInputs], report: Report) -> None:
        self.path, self.report = run.path / HEALTH_FILE, report
        self._validation_inputs = validation_inputs
        self._inputs: ValidationInputs | None = None

    def __call__(self, model: nn.Module, step: int) -> None:
        self._inputs = self._validation_inputs() if self._inputs is None else self._inputs
        layers = softmax_health(self._inputs.looks(model))
        told = {"step": step, "sentences": health_sentences(layers), "layers": [rounded(x.to_dict()) for x in layers]}
        self._write(step, told)
        self.report({"event": "health", **told})

    def _write(self, step: int, told: dict[str, Any]) -> None:
        """Steps that are repeated after a kill are written once: later lines are cut off first."""
        before = [line for line in read_lines(self.path) if line["step"] < step]
        write_text(self.path, "".join(f"{json.dumps(line)}\n" for line in [*before, told]))


def has_health_log(run: RunDirectory) -> bool:
    """Whether softmax health was logged from the start: a resumed run continues it."""
    return (run.path / HEALTH_FILE).exists()


def make_no_attention_event(kind: str) -> dict[str, Any]:
    """The message for a model without attention."""
    return {"event": "health", "without": f"there is no attention in {kind}, and nothing to watch"}


def rounded(table: Any) -> Any:
    """Numbers to six digits: a file that people read, and compare."""
    if isinstance(table, dict):
        return {name: rounded(value) for name, value in table.items()}
    if isinstance(table, list):
        return [rounded(value) for value in table]
    return float(f"{table:.6g}") if isinstance(table, float) else table
