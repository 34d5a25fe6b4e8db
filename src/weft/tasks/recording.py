"""What was decided before training and why, kept with the run: a report made later says what the command said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.checkpoints import RunDirectory

Report = Callable[[dict[str, Any]], None]  # is called with each event of a training
REPORT_PHASE = "writing the report"  # which comes after training, and is no part of it
PLAN_FILE = "plan.json"
SAMPLE_FILE = "sample.json"  # texts written on request, before training and after it


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
