"""What is known of each variant, as rows: read from its run, so that a kept one and a new one look the same."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft.checkpoints.files import read_lines
from weft.checkpoints.status import run_status
from weft.comparison.outcome import read_outcome
from weft.comparison.trials import Trial
from weft.tasks.words import Metric, Words

Row = dict[str, Any]


def row_of(order: Trial, out: Path, reason: str = "") -> Row:
    """Name, settings, how it stands, what it cost and how good it is."""
    found = read_outcome(out)
    done, found_reason = found.pop("done", False), found.pop("reason", "")
    reason = "" if done else order.reason or reason or found_reason
    steps = found.get("steps")
    status = run_status(out) if out.is_dir() else None
    if not done and status is not None:
        steps = status.step
    row: Row = {
        "model": order.name,
        "settings": order.settings,
        "run": str(out) if out.is_dir() else None,
        "status": "finished" if done else "failed" if reason else "waiting" if status is None else "interrupted",
        **({"reason": reason} if reason else {}),
        "seconds": found.pop("seconds", None),
        "steps": steps,
        "parameters": found.pop("parameters", order.parameters),
        "peak_memory": found.pop("peak_memory", None),
        "flops": order.flops * steps if order.flops is not None and steps else None,
    }
    if done and status is not None and status.step not in (None, steps):
        row["note"] = f"trained further since: {status.step} steps now"
    return row | {name: value for name, value in found.items() if name not in row}


def deciding_metric(rows: Sequence[Row], words: Words) -> str:
    """The metric that all finished variants have and that says most about the task, by what the task says of itself."""
    finished = [row for row in rows if row["status"] == "finished"]
    wanted = words.deciding_metrics()
    return next((name for name in wanted if finished and all(name in row for row in finished)), "validation_loss")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def best_of(rows: Sequence[Row], name: str, metric: Metric) -> str | None:
    """The name of the best one; of equals the one with the lower held-out loss, then the first."""
    finished = [row for row in rows if row["status"] == "finished" and _is_number(row.get(name))]
    sign = -1 if metric.more_is_better else 1
    ranked = sorted(finished, key=lambda row: (sign * row[name], row.get("validation_loss", 0.0)))
    return ranked[0]["model"] if ranked else None


def curve_of(run: Path, measure: str = "validation_loss") -> list[tuple[int, float, float]]:
    """(step, seconds of training until then, the measure of what is held out) of every evaluation of a run."""
    seconds = {line["step"]: line.get("seconds", 0.0) for line in read_lines(run / "timing.jsonl")}
    points, spent, last = [], 0.0, 0
    for line in read_lines(run / "metrics.jsonl"):
        spent += sum(seconds.get(step, 0.0) for step in range(last + 1, line["step"] + 1))
        last = line["step"]
        if line.get(measure) is not None:  # a loss may be infinite
            points.append((last, round(spent, 3), line[measure]))
    return points
