"""`weft.train(…)`: the door from Python. What it trains is what the command trains, and the report is written too."""

from __future__ import annotations

import contextlib
import functools
import os
from pathlib import Path
from typing import Any

from weft.checkpoints.status import run_status
from weft.report import write_report
from weft.tasks import Run
from weft.tasks import train as train_without_report


@functools.wraps(train_without_report)
def train(
    task: str | None = None,
    data: Any = None,
    *,
    config: str | Path | None = None,
    set: dict[str, Any] | None = None,
    **options: Any,
) -> Run:
    run = train_without_report(task, data, config=config, set=set, **options)
    finished = run_status(run.directory.path).state == "finished"
    if finished and os.environ.get("RANK", "0") == "0":  # under torchrun, the first process writes for all
        with contextlib.suppress(KeyboardInterrupt):  # who does not want to wait for it still has the run
            write_report(run.directory.path)
    return run
