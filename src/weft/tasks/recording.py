"""What was decided before training and why, kept with the run: a report made later says what the command said."""

from __future__ import annotations

from typing import Any

from weft.checkpoints import RunDirectory
from weft.models import preset
from weft.tasks.job import Report
from weft.tasks.request import Request
from weft.tasks.task import Prepared

PLAN_FILE = "plan.json"
SAMPLE_FILE = "sample.json"  # what it wrote on request, before training and after it


class Recording:
    """Passes every event on, and remembers the plan, the warnings, and what the model wrote on request."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.plan: dict[str, Any] = {}
        self.warnings: list[str] = []
        self.sample: dict[str, str] = {}
        self.run: RunDirectory | None = None

    def __call__(self, event: dict[str, Any]) -> None:
        self.report(event)
        kind = event["event"]
        if kind == "plan":
            self.plan = {name: value for name, value in event.items() if name != "event"}
        elif kind == "warning":
            self.warnings.append(event["text"])
        elif kind == "sample" and self.run is not None:
            self.sample |= {"prompt": event["prompt"], event["when"]: event["text"]}
            self.run.write_json(SAMPLE_FILE, self.sample)

    def begin(self, run: RunDirectory, reasons: dict[str, str]) -> None:
        """The run is there: from now on, what is remembered is written into it."""
        self.run = run
        run.write_json(PLAN_FILE, {"plan": self.plan, "reasons": reasons, "warnings": self.warnings})


def reasons_of(request: Request, prepared: Prepared) -> dict[str, str]:
    """Why each thing was chosen, in a few words: what was asked for, what is usual, what was measured."""
    found = {"task": "told from the data" if request.task_is_told else "asked for"}
    usual = f"the usual one for {request.task}"
    if request.start is not None:
        found["model"] = found["tokenizer"] = f"it continues from {request.start}"
        found["size"] = "comes with the weights it began from"
    else:
        found["model"] = "asked for" if request.model else usual
        found["tokenizer"] = "asked for" if request.tokenizer or request.says("tokenizer") else usual
        found["size"] = _size(request)
    if prepared.tokenizer is None:
        found.pop("tokenizer", None)
    found["steps"] = _steps(request, prepared)
    return found


def _size(request: Request) -> str:
    if request.model is not None and preset(request.model)[1]:
        return f"a size with a name: {request.model}"
    said = [f"{key} = {value}" for key, value in request.changes.items() if key.startswith("model.")]
    rest = "what suits this much data and time"
    return f"{', '.join(said)} as set, the rest {rest}" if said else rest


def _steps(request: Request, prepared: Prepared) -> str:
    training = prepared.config.training
    if not prepared.config.model.learned_in_steps:
        return "all of it is counted once"
    if request.steps is not None:
        return "asked for"
    if request.epochs is not None:
        return f"for the {request.epochs:g} readings that were asked for"
    if request.minutes is not None and training.minutes is not None:
        return f"as many as fit into {training.minutes:g} minutes, by the speed measured here"
    if training.minutes is not None:
        return f"as many as fit into {training.minutes:g} minutes, the usual time, by the speed measured here"
    if request.minutes is not None:
        return "as many as pay; there was time for all of them"
    return "as many readings as are usual for this much data"
