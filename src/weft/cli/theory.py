"""`weft theory`: every claim of the documents, checked by computing."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from weft.errors import ConfigError, DataError

if TYPE_CHECKING:
    from weft.theory import Finding
    from weft.theory.claim import Value
    from weft.theory.prediction import Prediction

REPORT = "theory.html"
NARROW = 72  # columns; below, a claim takes a few lines instead of a row
STYLES = {"holds": typer.colors.GREEN, "document is wrong": typer.colors.YELLOW}


class OptionalFile(TyperCommand):
    """`--report` takes a file, or none."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Name the usual file where none was named."""
        words: list[str] = []
        for place, word in enumerate(args):
            words.append(word)
            following = args[place + 1] if place + 1 < len(args) else "-"
            if word == "--report" and (following.startswith("-") or not _is_file(following)):
                words.append("")
        return super().parse_args(ctx, words)


def _is_file(word: str) -> bool:
    """Whether a word behind --report is its file, and not a claim."""
    return "." in word or "/" in word or "\\" in word


def theory(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]…", help="Claims, such as T7. Default: all")] = None,
    report: Annotated[
        str | None,
        typer.Option(metavar="[FILE.html]", help=f"Write a page with all numbers and images. Default: {REPORT}"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Check what teaching documents claim about Transformers, by computing it on this package's own code.

    Example:  weft theory

    Example:  weft theory T7 T13

    Example:  weft theory --report theory.html

    Each claim is shown with what the document predicts and what was measured. A verdict is computed from the two.
    Claims that need training (T33, T39) are computed when they are named.
    """
    path = None if report is None else _place(report)
    from weft.index import by_id, index, is_enough

    for word in ids or () if is_enough() else ():
        by_id(word, index()["claims"])
    from weft.theory import claims

    known = claims()
    chosen = list(dict.fromkeys(by_id(word, known) for word in ids or ()))
    found = _computed(chosen)
    if path is not None:
        from weft.checkpoints.files import write_text
        from weft.theory.page import page

        write_text(path, page(found))
        typer.echo(f"open {path}", err=True)
    if as_json:
        typer.echo(json.dumps({"claims": [finding.to_dict() for finding in found]}, ensure_ascii=False))
    elif chosen:
        for place, finding in enumerate(found):
            _echo([""] if place else [], _in_full(finding, _columns()))
    elif path is None:
        _echo(_overview(found, _columns()))
    broken = [finding.id for finding in found if not finding.sound]
    if broken:
        typer.echo(
            f"weft: {', '.join(broken)}: measured is not what theory predicts; a part of Weft is broken", err=True
        )
        raise typer.Exit(1)


def _place(report: str) -> Path:
    """Where the page goes, before any work is done for it; without a name, one that is free."""
    if not report:
        names = [REPORT, *(f"{Path(REPORT).stem}-{n}.html" for n in range(2, 1000))]
        return next(Path(name) for name in names if not Path(name).exists())
    path = Path(report)
    if path.suffix.lower() not in (".html", ".htm"):
        raise ConfigError(f"--report {report}", expected="a name that ends with .html")
    if path.exists():
        raise DataError(f"{report} is there already", advice="choose another --report")
    if not path.parent.is_dir():
        raise DataError(f"{report} cannot be written: there is no folder {path.parent}")
    return path


def _computed(chosen: Sequence[str]) -> list[Finding]:
    """All that were named; or all but those that take minutes."""
    from weft.theory import Finding, claims
    from weft.theory.claim import told_seconds

    known = claims()
    wanted = [known[id] for id in chosen] or list(known.values())
    running = [claim for claim in wanted if chosen or not claim.on_request]
    seconds = sum(claim.seconds for claim in running)
    if sys.stderr.isatty() and seconds > 2:
        typer.echo(f"Computing {len(running)} claims, about {told_seconds(seconds)} …", err=True)
    return [claim.check() if claim in running else Finding(claim) for claim in wanted]


# -- in a terminal ----------------------------------------------------------------------------


def _columns() -> int:
    return shutil.get_terminal_size((80, 24)).columns


def _echo(*parts: Sequence[str] | Iterator[str]) -> None:
    """Lines, verdicts in colour where colours can be shown."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "").lower() in ("dumb", "unknown")
    colour = sys.stdout.isatty() and not plain
    for line in (line.rstrip() for part in parts for line in part):
        verdict = next((verdict for verdict in STYLES if colour and line.endswith(verdict)), "")
        typer.echo(line.removesuffix(verdict) + typer.style(verdict, fg=STYLES[verdict]) if verdict else line)


def _brief(finding: Finding) -> tuple[str, str, str]:
    """What was looked at, predicted and measured, of the values that matter most."""
    if finding.evidence is None:
        return "", "", "not run"
    values = finding.values[: finding.evidence.brief]
    sides = ([v.what for v in values], [v.told(v.document) for v in values], [v.told(v.measured) for v in values])
    what, predicted, measured = (" / ".join(side) for side in sides)
    return what, predicted, measured


def _overview(found: Sequence[Finding], columns: int) -> Iterator[str]:
    """A row for each claim, or a few lines where rows would not fit."""
    verdicts = [finding.verdict for finding in found]
    yield from textwrap.wrap(
        f"{len(found)} claims: {verdicts.count('holds')} hold, in {verdicts.count('document is wrong')} the document "
        f"is wrong, {verdicts.count(None)} not run. Each in full: weft theory T7",
        columns,
    )
    yield ""
    if columns < NARROW:
        for finding in found:
            yield from _in_lines(finding, columns)
        return
    wide = min(columns, 120)
    verdict, id = 17, 4
    side = (wide - id - verdict - 8) * 2 // 7
    widths = (id, wide - id - verdict - 8 - 2 * side, side, side, verdict)
    yield from _cells(("id", "claim", "predicted", "measured", "verdict"), widths)
    for finding in found:
        _, predicted, measured = _brief(finding)
        yield from _cells((finding.id, finding.claim.title, predicted, measured, finding.verdict or "not run"), widths)


def _cells(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """One row, each cell wrapped in its column; the verdict stands in the first line and ends it."""
    wrapped = [
        textwrap.wrap(cell, width, break_long_words=True) or [""] for cell, width in zip(row, widths, strict=True)
    ]
    for number in range(max(map(len, wrapped))):
        cells = [lines[number] if number < len(lines) else "" for lines in wrapped]
        yield "  ".join(f"{cell:{width}}" for cell, width in zip(cells, widths, strict=True))


def _in_lines(finding: Finding, columns: int) -> Iterator[str]:
    what, predicted, measured = _brief(finding)
    yield from textwrap.wrap(f"{finding.id} {finding.claim.title}", columns, subsequent_indent="    ")
    if finding.evidence is not None:
        told = {"": what, "predicted ": predicted, "measured ": measured}
        for name, words in told.items():
            yield from textwrap.wrap(name + words, columns, initial_indent="  ", subsequent_indent="    ")
    yield f"  {finding.verdict or 'not run'}"


def _in_full(finding: Finding, columns: int) -> Iterator[str]:
    """All there is to say about a claim."""
    from weft.theory.drawing import LETTERS, letters

    claim, wide = finding.claim, min(columns, 100)
    yield from textwrap.wrap(f"{finding.id}  {claim.title}", wide)
    yield from textwrap.wrap(f"document {', '.join(claim.documents)}, {claim.where}", wide)
    yield ""
    yield from textwrap.wrap(claim.says, wide, initial_indent="    ", subsequent_indent="    ")
    yield ""
    yield from _values(finding.values, wide)
    yield f"Verdict: {finding.verdict or 'not run'}"
    yield from textwrap.wrap(finding.says, wide)
    if finding.evidence is None:
        return
    for table in finding.evidence.tables:
        yield ""
        yield from textwrap.wrap(table.title, wide)
        yield from _table(table.heads, table.rows, wide)
    for chart in finding.evidence.charts:
        yield ""
        yield from letters(chart, wide)
        for place, name in enumerate(chart.lines):
            yield from textwrap.wrap(f"{LETTERS[place % len(LETTERS)]} {name}", wide)


def _values(values: Sequence[Value], wide: int) -> Iterator[str]:
    """What the document predicts, what is right where that is something else, and what was measured."""
    for v in values:
        yield from textwrap.wrap(v.what, wide)
        sides = {"the document predicts": v.document, "right is": v.right if v.document != v.right else None}
        told = [f"{name} {v.told(side)}{_around(side)}" for name, side in sides.items() if side is not None]
        told.append(f"measured {v.told(v.measured)}")
        yield from textwrap.wrap(", ".join(told), wide, initial_indent="    ", subsequent_indent="    ")
    if values:
        yield ""


def _around(side: Prediction) -> str:
    return f" {side.tolerance}" if side.tolerance.startswith("±") else ""


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], wide: int) -> Iterator[str]:
    """Columns as wide as they need to be; where they do not fit, a block for each row."""
    widths = [max(len(row[n]) for row in (heads, *rows)) for n in range(len(heads))]
    if sum(widths) + 2 * len(widths) - 2 <= wide:
        for row in (heads, *rows):
            first, *rest = (f"{cell:{'<' if n == 0 else '>'}{widths[n]}}" for n, cell in enumerate(row))
            yield "  ".join([first, *rest])
        return
    for row in rows:
        told = ", ".join(f"{head} {cell}".strip() for head, cell in zip(heads, row, strict=True))
        yield from textwrap.wrap(told, wide, subsequent_indent="    ")
