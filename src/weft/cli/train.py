"""`weft train`, `weft resume`: learning, and going on with it."""

# ruff: noqa: ARG001  (options are taken from the context, all at once)

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from weft.errors import ConfigError

if TYPE_CHECKING:
    from weft.checkpoints import RunDirectory
    from weft.training import Outcome

TASKS = ("generate", "fill", "classify", "translate", "embed")
OPTIONS = (  # those that a request takes under the same name
    *("model", "tokenizer", "validation", "test", "minutes", "steps", "epochs", "seed", "device", "threads", "out"),
    *("freeze", "sample", "text", "pair", "label", "pairs"),
)
STARTED = time.perf_counter() - 0.1  # the interpreter was there before us


def train(
    context: typer.Context,
    data: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TASK] DATA…",
            help="generate or fill, then text files or folders; classify, then tables (.csv .tsv .jsonl); or demo",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="gpt or bert (sized by the plan), or a named size: gpt-small, gpt2, bert-base. Default: by task"
        ),
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(help="characters, words, bytes, bpe or wordpiece. Default: bpe to write, wordpiece to read"),
    ] = None,
    text: Annotated[str | None, typer.Option(help="The column of the text in a table. Default: found")] = None,
    pair: Annotated[str | None, typer.Option(help="The column of a second text. Default: found")] = None,
    label: Annotated[str | None, typer.Option(help="The column of the label. Default: found")] = None,
    pairs: Annotated[
        str | None, typer.Option(metavar="TABLE", help="fill: labelled pairs for the objective `entailment`.")
    ] = None,
    validation: Annotated[list[str] | None, typer.Option(help="Data to hold out instead of a tenth.")] = None,
    test: Annotated[
        list[str] | None, typer.Option(help="Data to measure the best weights on, at the very end.")
    ] = None,
    from_: Annotated[
        str | None, typer.Option("--from", metavar="RUN|HF_DIR", help="Begin with the weights of another model.")
    ] = None,
    freeze: Annotated[
        str | None, typer.Option(metavar="N|embeddings", help="What keeps its weights: the first N layers.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(help="Plan for this time. Default: 5; a table is read a few times")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Train this many steps.")] = None,
    epochs: Annotated[float | None, typer.Option(help="Read the data this many times.")] = None,
    seed: Annotated[int | None, typer.Option(help="Another seed, another run. Default: 0")] = None,
    out: Annotated[str | None, typer.Option(help="Directory of the run. Default: runs/TASK-NAME-N")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda or mps. Default: cuda if there is one")] = None,
    threads: Annotated[int | None, typer.Option(help="Processor threads. Default: all")] = None,
    sample: Annotated[
        str | None, typer.Option(metavar="PROMPT", help="Show what the model writes after it, before and after.")
    ] = None,
    config: Annotated[
        str | None, typer.Option(metavar="RECIPE.toml", help="Settings from a file; options win over it.")
    ] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any setting.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done; write nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Events as JSON lines on stdout.")] = False,
) -> None:
    """Train a model on your own texts or tables.

    Example:  weft train book.txt --minutes 5

    Example:  weft train classify reviews.csv --test test.csv
    """
    words = data or []
    task, words = (words[0], words[1:]) if words and words[0] in TASKS else (None, words)
    if not words and config is None:
        raise ConfigError(
            "no data was given", expected="text files, a folder, tables, or demo", advice="weft train demo"
        )
    _one_of(minutes, steps, epochs)
    from weft.cli.progress import Reporter
    from weft.tasks.flow import train_task
    from weft.tasks.request import make_request

    options = {name: tuple(given) if isinstance(given, list) else given for name, given in context.params.items()}
    options = {"start": from_} | {name: options[name] for name in OPTIONS}
    request = make_request(words, options, task=task, config=config, changes=parse_changes(set_ or []))
    request.dry_run, request.started = dry_run, STARTED
    with Reporter(as_json=as_json) as reporter:
        run, outcome = train_task(request, reporter)
    if run is not None and outcome is not None:
        finish(run, outcome, as_json=as_json)


def resume(
    run: Annotated[str, typer.Argument(help="The directory of the run.")],
    minutes: Annotated[float | None, typer.Option(help="Train a finished run further for this time.")] = None,
    steps: Annotated[int | None, typer.Option(help="Or for this many steps.")] = None,
    epochs: Annotated[float | None, typer.Option(help="Or for this many readings of the text.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Events as JSON lines on stdout.")] = False,
) -> None:
    """Go on with a run exactly where it stopped.

    Example:  weft resume runs/generate-book-1
    """
    from weft.cli.progress import Reporter
    from weft.tasks.flow import resume_task
    from weft.tasks.job import Further

    _one_of(minutes, steps, epochs)
    with Reporter(as_json=as_json) as reporter:
        directory, outcome = resume_task(run, reporter, Further(minutes, steps, epochs))
    finish(directory, outcome, as_json=as_json)


def evaluate(
    run: Annotated[str, typer.Argument(help="The directory of the run.")],
    data: Annotated[list[str] | None, typer.Argument(help="Other data than the run's held-out part.")] = None,
    weights: Annotated[str, typer.Option(help="Measure it with maps rounded to bf16 or int8.")] = "float32",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
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
    from weft.cli.wording import measured

    for line in measured(opened.task, metrics):
        typer.echo(line)


def _one_of(*lengths: float | None) -> None:
    if sum(value is not None for value in lengths) > 1:
        raise ConfigError("more than one of --minutes, --steps, --epochs", expected="one of them")


def finish(run: RunDirectory, outcome: Outcome, *, as_json: bool) -> None:
    """The last words: what came out, and what to do next."""
    progress = outcome.progress
    if os.environ.get("RANK", "0") != "0":  # under torchrun, the first process speaks for all
        return
    if outcome.stopped_by == "signal":
        typer.echo(f"Stopped and saved at step {progress.step}. Go on with:  weft resume {run.path}", err=True)
        sys.exit(130)
    from weft.cli.wording import next_words, overfitted, result
    from weft.report import training_report
    from weft.tasks.job import final_metrics

    task = run.read_config()["task"]

    metrics = final_metrics(run, outcome)
    run.write_file("report.html", training_report(run.path))
    event = {
        "event": "done",
        "run": str(run.path),
        "steps": progress.step,
        "seconds": round(time.perf_counter() - STARTED, 2),
        **metrics,
        "stopped_by": outcome.stopped_by,
    }
    if as_json:
        typer.echo(json.dumps(event))
        return
    if progress.best_step < progress.step:
        typer.echo(overfitted(task, progress.best_step, progress.step), err=True)
    told = result(task, progress.best, metrics)
    typer.echo(f"Done in {event['seconds']:.0f} s: {told}, in {run.path}", err=True)
    typer.echo(next_words(task, run.path), err=True)


def parse_changes(settings: list[str]) -> dict[str, str]:
    """`--set a.b=c` as a dict."""
    changes = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise ConfigError(f"--set {setting}", expected="key=value, such as model.width=128")
        changes[key] = value
    return changes
