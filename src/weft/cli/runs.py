"""`weft runs`: which runs there are, how they stand, and removing one."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.errors import ConfigError, DataError, WeftError, did_you_mean

if TYPE_CHECKING:
    from rich.console import Console

    from weft.checkpoints.status import RunStatus

FOLDER = "runs"
NARROW = 72  # columns; below, a run takes a few lines instead of a row


def runs(
    folder: Annotated[str, typer.Argument(help="Where the runs are.")] = FOLDER,
    remove: Annotated[
        str | None, typer.Option(metavar="RUN", help="Remove this run: its directory, or its name in FOLDER.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Remove without asking.")] = False,
    report: Annotated[str | None, typer.Option(metavar="RUN", help="Make the report.html of this run (again).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """List the runs and how they stand, remove one, or make its report again.

    Example:  weft runs --remove runs/generate-book-1

    Example:  weft runs --report runs/generate-book-1
    """
    if remove is not None and report is not None:
        raise ConfigError("--remove and --report together", expected="one of them")
    if remove is not None:
        remove_one(remove, folder, yes=yes, as_json=as_json)
        return
    if report is not None:
        report_one(report, folder, as_json=as_json)
        return
    if yes:
        raise ConfigError("--yes without --remove", expected="--remove RUN --yes")
    found = _list(folder)
    if as_json:
        typer.echo(json.dumps({"runs": [run.to_dict() for run in found]}))
    elif not found:
        typer.echo(f"There are no runs in {shown(folder)}. A first one:  weft train demo")
    else:
        from rich.console import Console

        show(found, Console())


def _list(folder: str) -> list[RunStatus]:
    if not os.path.isdir(folder):
        if folder == FOLDER and not os.path.exists(folder):
            return []  # nothing was trained here yet
        near = [item.name for item in Path(".").iterdir() if item.is_dir()]
        what = "is not a folder" if os.path.exists(folder) else "does not exist"
        hint = did_you_mean(folder, near)
        raise DataError(f"{folder} {what}", expected="a folder of runs", advice=hint if "did you" in hint else "")
    from weft.checkpoints.status import list_runs

    return list_runs(folder)


def remove_one(run: str, folder: str, *, yes: bool, as_json: bool) -> None:
    """Ask, then remove; anything that is not surely a run that stands still is refused before the question."""
    path = _meant(run, folder)
    from weft.checkpoints.removal import check_removable, remove_run

    status = check_removable(path)
    if not yes and not _agreed(f"Remove {shown(str(path))} ({status.status}, {megabytes(status.size)})?"):
        typer.echo("Nothing was removed.", err=True)
        raise typer.Exit(1)
    remove_run(path)
    if as_json:
        typer.echo(json.dumps({"removed": str(path), "size": status.size, "files": status.files}))
    else:
        typer.echo(f"Removed {shown(str(path))}: {megabytes(status.size)} are free again.")


def report_one(run: str, folder: str, *, as_json: bool) -> None:
    """Make the page of a run from its files; runs of earlier versions get one too."""
    path = _meant(run, folder, "--report")
    from weft.checkpoints import RunDirectory
    from weft.report.training import made_report

    try:
        made = made_report(RunDirectory.open(path).path)
    except Exception as error:
        why = str(error) if isinstance(error, WeftError) else f"{type(error).__name__}: {error}"
        raise DataError(f"no report of {path} can be made: {why}") from error
    typer.echo(json.dumps({"report": str(made)}) if as_json else f"Made {shown(str(made))}")


def _meant(run: str, folder: str, option: str = "--remove") -> Path:
    """A path as given, or a name from the list; never a guess between two."""
    if not run:
        raise ConfigError(f"{option} was given nothing", expected=f"{option} RUN")
    given, listed = Path(run), Path(folder) / run
    is_name = run not in (".", "..") and os.path.basename(run) == run
    if is_name and os.path.lexists(listed) and os.path.abspath(given) != os.path.abspath(listed):
        if os.path.lexists(given):
            raise ConfigError(f"there are both ./{run} and {listed}", expected="one of these two")
        return listed
    if os.path.lexists(given):
        return given
    names = [item.name for item in Path(folder).iterdir()] if is_name and os.path.isdir(folder) else []
    hint = did_you_mean(run, names)
    raise DataError(f"there is no run {run}", advice=hint if "did you" in hint else "`weft runs` lists them")


def _agreed(question: str) -> bool:
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:
        if sys.stdin is not None and sys.stdin.isatty():
            raise  # Ctrl-C
        typer.echo(err=True)  # the question stands on a line without an end
        raise ConfigError("nobody answered: nothing was removed", advice="--yes removes without asking") from None


# -- showing ----------------------------------------------------------------------------------


def show(found: list[RunStatus], console: Console) -> None:
    """A row for each run, or a few lines where rows would not fit."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    now = time.time()
    if console.width < NARROW:
        for run in found:
            parts = [run.task, _progress(run), _loss(run) and f"loss {_loss(run)}", megabytes(run.size)]
            words = ", ".join(shown(part) for part in parts if part) + f", {age(now - run.changed)} ago"
            console.print(Text(shown(run.name), overflow="fold"))
            console.print(Padding(Text(words, overflow="fold"), (0, 0, 0, 2)))
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for title in ("run", "task", "status", "loss", "size", "age"):
        right = title in ("loss", "size", "age")
        table.add_column(title, justify="right" if right else "left", no_wrap=right, overflow="fold")
    for run in found:
        cells = (run.name, run.task or "?", _progress(run), _loss(run), megabytes(run.size), age(now - run.changed))
        table.add_row(*(Text(shown(cell)) for cell in cells))
    console.print(table)


def _progress(run: RunStatus) -> str:
    return f"finished, {run.step} steps" if run.state == "finished" else run.status


def _loss(run: RunStatus) -> str:
    return "" if run.best is None else f"{run.best:.4f}"


def shown(text: str) -> str:
    """A name from the disk without what a terminal would obey."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def megabytes(size: int) -> str:
    """1.2 MB: short, in powers of ten as shops and file managers count."""
    amount, unit = float(size), "B"
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 999.5 or unit == "GB":
            break
        amount /= 1000
    return f"{amount:.0f} {unit}" if unit == "B" or amount >= 99.5 else f"{amount:.1f} {unit}"


def age(seconds: float) -> str:
    """One number and its unit."""
    for limit, unit, length in ((99, "s", 1), (5940, "min", 60), (172_800, "h", 3600)):
        if seconds < limit:
            return f"{max(0, seconds) / length:.0f} {unit}"
    return f"{seconds / 86_400:.0f} days"
