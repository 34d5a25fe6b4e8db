"""The files of a run that its report is made of, read once; what is not there is empty."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from weft.checkpoints import RunDirectory
from weft.checkpoints.files import read_json, read_lines
from weft.checkpoints.status import RunStatus, newest_progress, run_status
from weft.errors import WeftError
from weft.tasks.examples import EXAMPLES_FILE
from weft.tasks.recording import PLAN_FILE, SAMPLE_FILE
from weft.tasks.results import BY_LENGTH, TEST_FILE, metrics_of
from weft.tasks.run import Run
from weft.tasks.task import find_task
from weft.tasks.watching import HEALTH_FILE
from weft.tasks.words import Words

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunFiles:
    """One run, as far as its files tell.

    config      all settings
    plan        what was planned, in numbers; runs of earlier versions have none
    reasons     why, by the name of what was chosen
    warnings    that were given before training
    steps       the log, a line for each step; `checks` are those at which something was measured
    examples    what it does, and what its data are like
    sample      what it wrote on request before and after training
    health      of its softmax, if it was watched while it learned
    """

    path: Path
    config: dict[str, Any]
    plan: dict[str, Any] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)
    timing: list[dict[str, Any]] = field(default_factory=list)
    test: dict[str, Any] = field(default_factory=dict)
    by_length: list[dict[str, Any]] = field(default_factory=list)
    examples: dict[str, Any] = field(default_factory=dict)
    sample: dict[str, str] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    health: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def read(cls, path: str | Path) -> RunFiles:
        """Of this directory; only a missing or strange config.json is an error."""
        run = RunDirectory.open(path)
        plan, test = _json(run, PLAN_FILE), _json(run, TEST_FILE)
        return cls(
            run.path,
            run.read_config(),
            plan.get("plan", {}),
            plan.get("reasons", {}),
            plan.get("warnings", []),
            read_lines(run.metrics_file),
            read_lines(run.timing_file),
            test,
            test.get("by_length") or _json(run, BY_LENGTH) or [],
            _json(run, EXAMPLES_FILE),
            _json(run, SAMPLE_FILE),
            _json(run, "environment.json"),
            read_lines(run.path / HEALTH_FILE),
        )

    @property
    def task(self) -> str:
        """What it learned to do."""
        return str(self.config.get("task"))

    @property
    def words(self) -> Words:
        """What its task says about such runs."""
        return find_task(self.task, (self.config.get("model") or {}).get("kind")).words

    @property
    def checks(self) -> list[dict[str, Any]]:
        """Steps at which what was held out was measured."""
        return [step for step in self.steps if step.get("validation_loss") is not None]

    @cached_property
    def run(self) -> Run:
        """Opened, for what needs the model."""
        return Run(self.path)

    @cached_property
    def status(self) -> RunStatus:
        """How it stands."""
        return run_status(self.path)

    @cached_property
    def progress(self) -> dict[str, Any]:
        """How far it came and how good it was, by its newest checkpoint."""
        return newest_progress(self.path)

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """How good its best weights are, with `measured_on`; empty before the first checkpoint."""
        return metrics_of(RunDirectory(self.path), self.progress) if self.progress.get("best_metrics") else {}

    @cached_property
    def seconds(self) -> dict[int, float]:
        """Seconds of training up to each step; of a step that was taken twice, the later one counts."""
        each = {line["step"]: line.get("seconds", 0.0) for line in self.timing}
        spent, found = 0.0, {}
        for step in sorted(each):
            spent += each[step]
            found[step] = spent
        return found


def _json(run: RunDirectory, name: str) -> Any:
    path = run.path / name
    try:
        return read_json(path) if path.exists() else {}
    except WeftError as error:
        log.warning("%s", error)
        return {}
