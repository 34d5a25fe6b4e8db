"""`weft.train(…)` and `weft.load(…)`: what it trains is what the command trains, and the report is written too."""

from __future__ import annotations

import contextlib
import functools
import os
from pathlib import Path
from typing import Any, Unpack

from weft.checkpoints.status import run_status
from weft.exchange.transfer import export_run
from weft.report import write_report
from weft.report.training import made_report
from weft.tasks import Run
from weft.tasks import load as open_run
from weft.tasks import train as train_without_report
from weft.tasks.options import Given, TrainOptions


def _export(path: Path, folder: str | Path, to: str | None) -> dict[str, Any]:
    return export_run(path, folder, to=to)


Run.reporter, Run.exporter = staticmethod(made_report), staticmethod(_export)


def load(path: str | Path) -> Run:
    """Open a run directory or a Hugging Face folder as what its task makes of it: a `TextGenerator`,
    a `TextClassifier`, an `ImageClassifier`, a `Translator`, a `MaskFiller`, a `Tagger`, a `TextEncoder`
    or `WordVectors`."""
    return open_run(path)


@functools.wraps(train_without_report)
def train(data: Given = None, **options: Unpack[TrainOptions]) -> Run:
    run = train_without_report(data, **options)
    finished = run_status(run.directory.path).state == "finished"
    if finished and os.environ.get("RANK", "0") == "0":  # under torchrun, the first process writes for all
        with contextlib.suppress(KeyboardInterrupt):  # who does not want to wait for it still has the run
            write_report(run.directory.path)
    return open_run(run.directory.path)
