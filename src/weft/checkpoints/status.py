"""How a run stands, told from its small files alone: no tensor is opened, and a damaged file is an answer."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.checkpoints.lock import try_lock
from weft.errors import DataError

STEP = re.compile(r"step-(0|[1-9]\d*)")


@dataclass(frozen=True)
class RunStatus:
    """One run: what it learns, how far it came, how good it is, what it takes on disk."""

    path: Path
    state: str  # finished, interrupted, running, new, imported or unreadable
    task: str | None = None
    step: int | None = None  # of the newest checkpoint
    steps: int | None = None  # of the whole run, as planned now
    best: float | None = None  # the lowest validation loss
    reason: str = ""  # why it is unreadable
    size: int = 0  # bytes of all its files
    files: int = 0
    changed: float = 0.0  # when something last happened, in seconds since 1970

    @property
    def name(self) -> str:
        """The name of its directory."""
        return self.path.name or str(self.path)

    @property
    def status(self) -> str:
        """The state in words."""
        if self.state == "unreadable":
            return f"unreadable: {self.reason}"
        if self.state == "imported":
            return "imported"
        if self.step is None:
            return "running, no checkpoint yet" if self.state == "running" else "no checkpoint yet"
        of = f"{self.step}" if self.steps is None else f"{self.step} of {self.steps}"
        words = {"running": f"running, saved at step {of}", "interrupted": f"interrupted at step {of}"}
        return words.get(self.state, self.state)

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        return {
            "run": str(self.path),
            "name": self.name,
            "task": self.task,
            "state": self.state,
            "status": self.status,
            "step": self.step,
            "steps": self.steps,
            "best_validation_loss": self.best,
            "size": self.size,
            "files": self.files,
            "changed": self.changed,
        }


def list_runs(folder: str | Path) -> list[RunStatus]:
    """The runs in a folder, or the folder itself if it is one; the one that changed last comes first."""
    folder = Path(folder)
    if is_run(folder):
        return [run_status(folder)]
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if not entry.name.startswith("."))
    except OSError as error:
        raise DataError(f"{folder} cannot be read: {error.strerror}", expected="a folder of runs") from None
    found = [run_status(folder / name) for name in names if is_run(folder / name)]
    return sorted(found, key=lambda run: -run.changed)


def is_run(path: Path) -> bool:
    """Whether a directory holds a config.json of ours, sound or damaged; those of other programs do not count."""
    try:
        return os.path.isfile(path / "config.json") and _is_ours(_read_config(path))
    except _UnreadableError:
        return True


def is_surely_run(path: Path) -> bool:
    """Stricter, for what cannot be undone: config.json is sound and carries our format number and a task."""
    try:
        config = _read_config(path)
    except _UnreadableError:
        return False
    return _is_ours(config) and isinstance(config.get("task"), str)


def run_status(path: str | Path) -> RunStatus:
    """Read config.json, the recorded events and the state of the newest checkpoint that can be read."""
    path = Path(path)
    size, files = _disk_use(path)
    on_disk: dict[str, Any] = {"size": size, "files": files, "changed": _changed(path)}
    running = is_locked(path)
    try:
        config = _read_config(path)
        if not _is_ours(config):
            raise _UnreadableError("config.json has no format number")
        step, progress = _newest(path / "checkpoints")
    except _UnreadableError as error:
        return RunStatus(path, "unreadable", reason=str(error), **on_disk)
    task = config.get("task") if isinstance(config.get("task"), str) else None
    training = config.get("training")
    steps = _whole(training.get("steps")) if isinstance(training, dict) else None
    finished = progress.get("finished") is True
    for event in _events(path / "events.jsonl"):
        at, total = _whole(event.get("step")), _whole(event.get("steps"))
        if event.get("event") in ("plan", "extend") and at is not None and total is not None:
            steps = total
            if event["event"] == "extend" and step is not None and at >= step:
                finished = False  # it is to be trained further, and has not begun
    fresh = "imported" if isinstance(config.get("origin"), dict) else "new"
    state = "running" if running else fresh if step is None else "finished" if finished else "interrupted"
    return RunStatus(path, state, task=task, step=step, steps=steps, best=_finite(progress.get("best")), **on_disk)


def newest_progress(path: str | Path) -> dict[str, Any]:
    """How far the newest checkpoint with a sound state came and how good it was; empty if there is none."""
    try:
        return _newest(Path(path) / "checkpoints")[1]
    except _UnreadableError:
        return {}


def is_locked(path: Path) -> bool:
    """Whether a process is at work in this run.

    A shared lock is tried for an instant, so that two lists at once do not take each other for training.
    """
    lock = path / ".lock"
    if not os.path.isfile(lock):
        return False
    try:
        with lock.open("rb") as file:
            return not try_lock(file, shared=True)
    except OSError:
        return False


# -- reading what may be damaged --------------------------------------------------------------


class _UnreadableError(Exception):
    """A file that cannot be used, in a few words."""


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise _UnreadableError(f"{path.name} is not there") from None
    except OSError as error:
        raise _UnreadableError(f"{path.name} cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):  # not UTF-8, not JSON, or nested without end
        raise _UnreadableError(f"{path.name} is not valid JSON") from None


def _read_config(path: Path) -> dict[str, Any]:
    config = _read_json(path / "config.json")
    if not isinstance(config, dict):
        raise _UnreadableError("config.json holds no settings")
    return config


def _is_ours(config: dict[str, Any]) -> bool:
    return _whole(config.get("format")) is not None


def _newest(folder: Path) -> tuple[int | None, dict[str, Any]]:
    """Step and progress of the newest checkpoint with a sound state.json; (None, {}) if there is none at all."""
    try:
        names = [entry.name for entry in os.scandir(folder) if entry.is_dir()]
    except OSError:
        return None, {}
    steps = sorted((int(match[1]) for name in names if (match := STEP.fullmatch(name))), reverse=True)
    refused = ""
    for step in steps:
        try:
            state = _read_json(folder / f"step-{step}" / "state.json")
        except _UnreadableError as error:
            refused = refused or f"step-{step}: {error}"
            continue
        progress = state.get("progress") if isinstance(state, dict) else None
        if isinstance(progress, dict):
            return step, progress
        refused = refused or f"step-{step}: state.json says no progress"
    if refused:
        raise _UnreadableError(refused)
    return None, {}


def _events(path: Path) -> Iterator[dict[str, Any]]:
    """The recorded decisions; a half-written line does not count."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
    except OSError:
        return
    for line in lines:
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            yield event


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _finite(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _disk_use(path: Path) -> tuple[int, int]:
    """Bytes and number of files; links are not followed, and what vanishes meanwhile does not count."""
    size = files = 0
    for base, _, names in os.walk(path):
        for name in names:
            try:
                size += os.lstat(os.path.join(base, name)).st_size
            except OSError:
                continue
            files += 1
    return size, files


def _changed(path: Path) -> float:
    """The latest of: settings written, a step logged, a checkpoint put in its place."""
    latest = 0.0
    for name in ("config.json", "metrics.jsonl", "checkpoints"):
        try:
            latest = max(latest, os.stat(path / name).st_mtime)
        except OSError:
            continue
    return latest
