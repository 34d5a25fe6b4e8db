"""How good a run is, as its files say: what was measured on the best weights when training was over."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from weft.checkpoints import RunDirectory
from weft.checkpoints.files import read_json
from weft.training import Outcome

TEST_FILE = "test.json"
BY_LENGTH = "by_length.json"  # of translations of the validation pairs, where there is no test


def final_metrics(run: RunDirectory, outcome: Outcome) -> dict[str, Any]:
    """How good the best weights are: on the test data if there are any, else on the validation data.

    None is an infinite loss: something came that the model calls impossible.
    """
    return metrics_of(run, asdict(outcome.progress))


def metrics_of(run: RunDirectory, progress: Mapping[str, Any]) -> dict[str, Any]:
    """The same from the progress that a checkpoint has."""
    best = progress["best"]
    found = {**plain_names(progress["best_metrics"]), "validation_loss": best, "measured_on": "validation"}
    found.pop("loss", None)
    if (run.path / TEST_FILE).exists():
        test = read_json(run.path / TEST_FILE)
        if test.pop("step") == progress["best_step"]:  # else it is of weights that were best before
            found |= {**test, "measured_on": "test"}
    if found["measured_on"] == "validation" and (run.path / BY_LENGTH).exists():
        found["by_length"] = read_json(run.path / BY_LENGTH)
    return {name: None if value in (math.inf, -math.inf) else value for name, value in found.items()}


def plain_names(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """By plain names: in a log they are prefixed, beside those of the step; here they are alone."""
    return {name.removeprefix("validation_"): value for name, value in metrics.items()}
