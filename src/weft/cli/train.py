"""`weft train`, `weft resume`: learning, and going on with it."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from weft.cli import options
from weft.cli.end_of_input import stop_at_eof
from weft.plugins import with_plugins
from weft.tasks.mistakes import refuse_mistakes
from weft.tasks.options import TrainOptions

if TYPE_CHECKING:
    from weft.checkpoints import RunDirectory
    from weft.training import Outcome

RISEN = 1.005  # a loss above the best by more than this has risen
STARTED = time.perf_counter() - 0.1  # the interpreter was there before us


@options.with_options(TrainOptions)
def train(
    data: options.Words = None,
    *,
    dry_run: options.DryRun = False,
    as_json: options.Events = False,
    until_eof: options.UntilEof = False,
    **given: Any,
) -> None:
    """Train a model on your own texts, tables or images.

    Example:  weft train book.txt --minutes 5

    Example:  weft train classify reviews.csv --test test.csv

    Example:  weft train classify flowers --model vit
    """
    if until_eof:
        stop_at_eof()
    asked = options.read_options("train", data, given)
    refuse_mistakes(**asked)
    from weft.cli.progress import Reporter
    from weft.tasks.experiment import Experiment
    from weft.tasks.request import make_request

    request = make_request(**asked)
    request.dry_run, request.started = dry_run, STARTED
    with Reporter(as_json=as_json) as reporter:
        experiment = Experiment.plan(request, reporter)
        if dry_run:
            return
        run, outcome = experiment.fit()
    finish(run, outcome, as_json=as_json)


def resume(
    run: options.RunDirectory,
    minutes: Annotated[float | None, typer.Option(help="Train a finished run further for this time.")] = None,
    steps: Annotated[int | None, typer.Option(help="Or for this many steps.")] = None,
    epochs: Annotated[float | None, typer.Option(help="Or for this many readings of the text.")] = None,
    as_json: options.Events = False,
    until_eof: options.UntilEof = False,
) -> None:
    """Go on with a run exactly where it stopped.

    Example:  weft resume runs/generate-book-1
    """
    if until_eof:
        stop_at_eof()
    from weft.cli.progress import Reporter
    from weft.tasks.experiment import Experiment

    further: dict[str, Any] = {"minutes": minutes, "steps": steps, "epochs": epochs}
    options.one_length(further)
    with Reporter(as_json=as_json) as reporter:
        experiment = Experiment.reopen(run, reporter)
        if any(value is not None for value in further.values()):
            experiment.extend(**further)
        directory, outcome = experiment.fit()
    finish(directory, outcome, as_json=as_json)


def evaluate(
    run: options.RunDirectory,
    data: Annotated[list[str] | None, typer.Argument(help="Other data than the run's held-out part.")] = None,
    weights: Annotated[str, typer.Option(help="Measure it with maps rounded to bf16 or int8.")] = "float32",
    as_json: options.OneObject = False,
) -> None:
    """Measure a run: nats per token and bits per byte of text, or how often it classifies right.

    Example:  weft evaluate runs/generate-book-1 other.txt
    """
    from weft.tasks.run import load

    opened = load(run)
    metrics = opened.evaluate(*(data or ()), weights=cast("Any", weights))
    if as_json:
        typer.echo(json.dumps(metrics))
        return
    for line in opened.description.words.measured(metrics):
        typer.echo(line)


def finish(run: RunDirectory, outcome: Outcome, *, as_json: bool) -> None:
    """The last words: what came out, and what to do next."""
    from weft.cli.progress import is_first, write_event
    from weft.models import ModelConfig
    from weft.tasks.environment import peak_memory
    from weft.tasks.recording import REPORT_PHASE
    from weft.tasks.results import final_metrics
    from weft.tasks.task import find_task, find_use
    from weft.tasks.use import can_be_exported

    progress = outcome.progress
    if not is_first():
        return
    event = {"run": str(run.path), "steps": progress.step, "peak_memory": peak_memory()}
    if outcome.stopped_by == "signal":
        if as_json:
            write_event({"event": "stopped", **event})
        again = with_plugins(f"weft resume {run.path}")
        typer.echo(f"Stopped and saved at step {progress.step}. Resume with:  {again}", err=True)
        sys.exit(130)
    config = run.read_config()
    task, model = config["task"], ModelConfig.from_config(config["model"])
    words = find_task(task, model.kind).words
    metrics = final_metrics(run, outcome)
    if as_json:
        write_event({"event": "phase", "name": REPORT_PHASE})
        _report(run)
        write_event({"event": "done", "seconds": _elapsed(), **event, **metrics, "stopped_by": outcome.stopped_by})
        return
    if progress.metrics.get("validation_loss", 0) > RISEN * progress.best:
        typer.echo(words.overfitted(progress.best_step, progress.step), err=True)
    told = words.result(progress.best, metrics)
    typer.echo(f"Done in {_elapsed():.0f} s: {told}, in {run.path}", err=True)
    page = _report(run)
    more = "  ·  " + with_plugins(f"weft resume {run.path} --minutes 5") if model.learned_in_steps else ""
    then = [with_plugins(f"weft export {run.path} DIR")] if can_be_exported(model) else []
    then += [] if page is None else [f"open {page}"]
    tried = f"Try:  {find_use(model, task)[1].command(run.path)}{more}"
    typer.echo("\n      ".join(filter(None, [tried, "  ·  ".join(then)])), err=True)


def _elapsed() -> float:
    """Seconds since the command began."""
    return round(time.perf_counter() - STARTED, 2)


def _report(run: RunDirectory) -> Path | None:
    """The page of a run; who does not want to wait for it loses nothing else."""
    from weft.report import write_report

    try:
        return write_report(run.path)
    except KeyboardInterrupt:
        return None
