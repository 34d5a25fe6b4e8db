"""`weft compare`: the same data, seed and time over several settings or models."""

from __future__ import annotations

import functools
import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from weft.cli import options
from weft.comparison.variants import TrialSpec, of_variant, parse_values, parse_vary
from weft.errors import ConfigError
from weft.tasks.mistakes import refuse_mistakes
from weft.tasks.options import CompareOptions

if TYPE_CHECKING:
    from rich.console import Console

    from weft.comparison import Comparison
    from weft.comparison.session import Session

SHOWN = 120  # letters of a sample
UNTOLD = ("reading", "planning")  # phases that were told before the first run
DIFFERENT = {  # help of options that `weft train` has too; None: it has no such option
    "minutes": "For each run. Default: as for `weft train`",
    "steps": "Train each this many steps.",
    "epochs": "Each reads the data this many times.",
    "seed": "The same for all. Default: 0",
    "out": "Folder of all runs. Default: runs/compare-NAME-N",
    "watch": None,
}


@options.with_options(CompareOptions, DIFFERENT)
def compare(
    data: options.Words = None, *, dry_run: options.DryRun = False, as_json: options.OneObject = False, **given: Any
) -> None:
    """Train the same data with several settings or models, one after the other, and compare what comes out.

    Example:  weft compare book.txt --vary model.attention.kind=softmax,local --minutes 5

    Example:  weft compare classify reviews.csv --test test.csv --vary model.width=64,128 --vary model.depth=1,2

    All share one tokenizer, split and seed. Table and charts: compare.html, compare.png and compare.json in DIR.
    """
    resume = given.pop("resume")
    if resume is None:
        out = given.pop("out")
        asked = _asked(data, given)
        _refuse_mistakes(asked)
    else:
        _refuse_others(resume, {"data": data, **given, "dry_run": dry_run})
    from weft.cli.progress import Reporter
    from weft.comparison.session import Session

    with Reporter() as reporter:
        session = Session.new(asked, out, reporter) if resume is None else Session.open(resume)
        if resume is None:
            _introduce(session, reporter.console)
        if dry_run:
            _show_plan(session, reporter.console, as_json=as_json)
            return
        try:
            result = session.run(_telling(reporter))
        except KeyboardInterrupt:
            reporter.close()
            again = f"weft compare --resume {shlex.quote(str(session.path))}"
            typer.echo(f"Stopped and saved. Go on with:  {again}", err=True)
            sys.exit(130)
    _finish(session, result, as_json=as_json)


def _asked(data: list[str] | None, given: dict[str, Any]) -> TrialSpec:
    """What the words and options ask for."""
    models, vary = given.pop("models"), parse_vary(given.pop("vary") or [])
    asked = options.read_options("compare", data, given)
    return TrialSpec(**asked, models=() if models is None else parse_values(models, "--models"), vary=vary)


def _refuse_mistakes(asked: TrialSpec) -> None:
    """Of each variant, before anything is loaded for them."""
    for variant in asked.variants():
        of_variant(variant, functools.partial(refuse_mistakes, **asked.asked_by(variant)))


def _refuse_others(resume: str, given: dict[str, Any]) -> None:
    """A comparison goes on with what it began with, and with nothing else."""
    for name, value in given.items():
        if value:
            raise ConfigError(
                f"--resume {resume} with {name if name == 'data' else options.flag_of(name)}",
                expected="--resume DIR alone: its settings are kept with it",
                advice="for other settings, compare anew in another folder",
            )


# -- while it runs ----------------------------------------------------------------------------


def _introduce(session: Session, console: Console) -> None:
    """How many runs, how long, and what cannot be trained."""
    plan = session.plan
    for order in plan.orders:
        if order.reason:
            console.print(f"Warning: {order.name} cannot be trained: {order.reason}")
    console.print(f"{plan.words()}, in {session.path}: {', '.join(o.name for o in plan.orders if not o.reason)}.")


def _telling(reporter: Any) -> Any:
    """Events of the runs as `weft train` shows them, under the name of each."""

    def report(event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "variant":
            reporter.close()
            words = ": finished before, kept" if event["kept"] and not event["reason"] else ""
            reporter.console.print(f"\n{event['name']} ({event['number']} of {event['count']}){words}")
        elif kind == "variant done":
            reporter.close()
            row = event["row"]
            if row["status"] == "failed":
                reporter.console.print(f"{row['model']} failed: {row['reason']}")
            elif not (Path(row["run"]) / "report.html").exists():
                _write_report(row)
        elif kind == "plan":
            reporter(event | {"same_data": True})
        elif event.get("name") in UNTOLD:
            reporter.close()
        elif kind != "warning":  # which came before the first run
            reporter(event)

    return report


def _write_report(row: dict[str, Any]) -> None:
    """The page of one run, as `weft train` leaves it."""
    from weft.report import write_report

    write_report(row["run"])


# -- the end ----------------------------------------------------------------------------------


def _show_plan(session: Session, console: Console, *, as_json: bool) -> None:
    orders = session.plan.orders
    names = ("settings", "parameters", "memory", "reason")
    if as_json:
        told = [{"model": o.name} | {n: getattr(o, n) for n in names if getattr(o, n)} for o in orders]
        typer.echo(json.dumps({"task": session.plan.task, "models": told}))
        return
    for order in orders:
        if not order.reason:
            memory = f", about {order.memory / 2**20:,.0f} MB" if order.memory else ""
            size = "counted" if order.parameters is None else f"{order.parameters:,} parameters"
            console.print(f"  {order.name}: {size}{memory}")


def _finish(session: Session, result: Comparison, *, as_json: bool) -> None:
    """The table, the page and the image; exit code 1 if a variant failed."""
    made = session.draw(result)
    if as_json:
        typer.echo(json.dumps(result.to_dict()))
    else:
        from rich.console import Console

        # a pipe has no width; a reason or a row is one line there
        show(result, Console(highlight=False, width=None if sys.stdout.isatty() else 1000))
        typer.echo(f"\nopen {made[0]}" + (f"  ·  {made[1].name}" if len(made) > 1 else ""), err=True)
    if result.failed:
        raise typer.Exit(1)


def show(result: Comparison, console: Console) -> None:
    """A row for each variant, or a few lines where rows would not fit; then why some failed."""
    from rich.table import Table
    from rich.text import Text

    titles, *rows = result.table()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for place, title in enumerate(titles):
        table.add_column(title.replace(", ", "\n"), justify="right" if place else "left", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row), style="bold" if row[-1] else "")
    console.print()
    if console.measure(table, options=console.options.update(max_width=1000)).maximum > console.width:
        for row in rows:
            name, *cells = row
            console.print(Text(f"{name} (best)" if cells.pop() else name))
            told = [f"{title} {cell}" for title, cell in zip(titles[1:-1], cells, strict=True) if cell]
            console.print(Text("  " + ", ".join(told)))
    else:
        console.print(table)
    for variant in result.rows:
        if reason := variant.get("reason") or variant.get("note"):
            console.print(Text(f"{variant['model']}: {reason}"))
    _show_lengths(result, console)
    _show_samples(result, console)


def _show_samples(result: Comparison, console: Console) -> None:
    """The same beginning, and a line of what each makes of it."""
    from rich.text import Text

    found = [row for row in result.rows if row.get("sample")]
    if not found:
        return
    console.print(Text(f"\nFrom “{' '.join(found[0]['sample']['prompt'].split())}”"))
    for row in found:
        console.print(Text(f"  {row['model']}: {' '.join(row['sample']['text'].split())[:SHOWN]}"))


def _show_lengths(result: Comparison, console: Console) -> None:
    """How good translations are by the length of their sources, a line for each length."""
    from rich.text import Text

    measure, table = result.by_length()
    if not table:
        return
    widths = [max(len(row[place]) for row in table) for place in range(len(table[0]))]
    console.print(f"\n{'BLEU' if measure == 'bleu' else 'Exact matches'} by the length of the source:")
    for row in table:
        console.print(Text("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))))
