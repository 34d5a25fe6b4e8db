"""What came of one variant: trained by `weft train` or `weft resume` as anybody would, and kept in its outcome.json."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

from weft.checkpoints import RunDirectory
from weft.checkpoints.files import read_lines
from weft.comparison.process import run_in_child
from weft.comparison.trials import Trial, digest
from weft.errors import DataError, WeftError
from weft.tasks.recording import REPORT_PHASE, Report
from weft.tasks.run import Run

OUTCOME = "outcome.json"
ENDS = ("done", "stopped", "failed")  # the last event of a command is one of them
OF_THE_COMMAND = ("event", "run", "steps", "seconds", "peak_memory")  # in the event `done`, beside what was measured


def train_trial(trial: Trial, recipe: Path, out: Path, report: Report) -> str:
    """Begin the run or go on with it; returns why that failed, or nothing. Seconds of earlier tries count too."""
    run, heard = RunDirectory(out), _Heard(trial, RunDirectory(out), report)
    before = read_outcome(out)
    seconds = max(before.get("seconds", 0.0), _trained_for(out))
    began, reason = time.perf_counter(), ""
    try:
        reason = run_in_child(_words(trial, recipe, run), heard)
        if not reason and heard.last.get("event") != "done":
            reason = "its process ended without a result"
    except WeftError as error:  # of `_Heard`, which looks at what the child does
        reason = str(error)
    finally:
        peak = max(heard.last.get("peak_memory") or 0, before.get("peak_memory") or 0)
        found: dict[str, Any] = {"done": False, **({"reason": reason} if reason else {})}
        found["seconds"] = round(seconds + (heard.ended or time.perf_counter()) - began, 2)
        found["peak_memory"] = peak or None
        if run.config_file.exists():
            run.write_json(OUTCOME, found)
    if not reason:
        found |= {"steps": heard.last["steps"], **_measured(heard.last), "done": True}
        sample = _sample(out)
        run.write_json(OUTCOME, found | ({} if sample is None else {"sample": sample}))
    return reason


def read_outcome(out: Path) -> dict[str, Any]:
    """What is known of a variant; empty if nothing is."""
    try:
        found = json.loads((out / OUTCOME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


class _Heard:
    """Takes the events of the child: passes them on, looks at the run before it is trained, remembers the end."""

    def __init__(self, trial: Trial, run: RunDirectory, report: Report) -> None:
        self.trial, self.run, self.report = trial, run, report
        self.ended = 0.0  # when it was trained and measured: its report is not part of the comparison
        self.last: dict[str, Any] = {}

    def __call__(self, event: dict[str, Any]) -> None:
        kind, phase = event["event"], event.get("name")
        if kind == "phase" and phase == "training":
            _check_shared(self.trial, self.run)
        if kind in ENDS:
            self.last = event
        if kind in ENDS or phase == REPORT_PHASE:
            self.ended = self.ended or time.perf_counter()
        else:
            self.report(event)


def _words(trial: Trial, recipe: Path, run: RunDirectory) -> list[str]:
    """What is typed after `weft`."""
    if run.config_file.exists():
        return ["resume", str(run.path)]
    if run.path.is_dir() and not run.path.is_symlink():
        shutil.rmtree(run.path)  # stopped before there was a run: settings are written last
    return ["train", f"--config={recipe}", *trial.words, f"--out={run.path}"]


def _check_shared(trial: Trial, run: RunDirectory) -> None:
    """The data and the tokenizer are those that were planned for, which all variants share."""
    if run.read_config()["data"]["fingerprint"] != trial.fingerprint:
        raise DataError(
            "the data have changed since the comparison began", advice="put the old data back, or compare anew"
        )
    if trial.tokenizer and digest(run.tokenizer_file.read_bytes()) != trial.tokenizer:
        raise DataError(
            f"{run.tokenizer_file} is not the tokenizer that was planned", advice="remove this run, or compare anew"
        )


def _trained_for(out: Path) -> float:
    """Seconds of all steps so far: at least so long it took, if nobody was there to write down the rest."""
    return sum(line.get("seconds", 0.0) for line in read_lines(out / "timing.jsonl"))


def _measured(done: dict[str, Any]) -> dict[str, Any]:
    """Numbers alone; what each class was taken for stands in the run."""
    metrics = {name: value for name, value in done.items() if name not in OF_THE_COMMAND}
    plain = {name: value for name, value in metrics.items() if isinstance(value, int | float | str | None)}
    if "by_length" in metrics:  # a short table, for the curves of translations
        plain["by_length"] = metrics["by_length"]
    return plain


def _sample(out: Path) -> dict[str, str] | None:
    """What it writes; a sample that cannot be had is no reason to lose the run."""
    try:
        run = Run(out)
        return run.description.sample(run)
    except WeftError:
        return None
