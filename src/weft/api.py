"""`weft.train(…)` and `weft.load(…)`: what it trains is what the command trains, and the report is written too."""

from __future__ import annotations

import contextlib
import functools
import os
from pathlib import Path
from typing import Any

from weft.checkpoints.status import run_status
from weft.exchange.transfer import export_run
from weft.report import write_report
from weft.tasks import Run
from weft.tasks import train as train_without_report


class LoadedRun(Run):
    """A run as `weft.load` and `weft.train` give it: it can be used, and written as other programs read it."""

    def export(self, folder: str | Path, to: str | None = None) -> dict[str, Any]:
        """Write it as a folder that Hugging Face's transformers opens; gives the certificate that it is the same.

        n-grams become an ARPA file, and vectors of words a file of word2vec; `to` asks for a format by name.
        """
        return export_run(self.directory.path, folder, to=to)


def load(path: str | Path) -> LoadedRun:
    """Open a run directory or a Hugging Face folder; which one it is, its config.json says."""
    return LoadedRun(path)


@functools.wraps(train_without_report)
def train(
    task: str | None = None,
    data: Any = None,
    *,
    config: str | Path | None = None,
    set: dict[str, Any] | None = None,
    **options: Any,
) -> LoadedRun:
    run = train_without_report(task, data, config=config, set=set, **options)
    finished = run_status(run.directory.path).state == "finished"
    if finished and os.environ.get("RANK", "0") == "0":  # under torchrun, the first process writes for all
        with contextlib.suppress(KeyboardInterrupt):  # who does not want to wait for it still has the run
            write_report(run.directory.path)
    return LoadedRun(run.directory.path)
