"""`weft attention RUN INPUT`: what every layer and head of a run looks at."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from weft.errors import ConfigError, DataError

if TYPE_CHECKING:
    from weft.analysis.view import AttentionView, MapView

DIGITS = 4  # of a weight, for programs


@dataclass(frozen=True)
class Wanted:
    """What was typed after the run and its input, and how it is to be shown."""

    pair: str | None = None
    target: str | None = None
    layer: int | None = None
    head: int | None = None
    out: str | None = None
    as_json: bool = False
    as_text: bool = False
    weights: bool = False

    def check(self) -> None:
        """Before a model is read for it."""
        for name, number in (("--layer", self.layer), ("--head", self.head)):
            if number is not None and number < 1:
                raise ConfigError(f"{name} {number}", expected="a number from 1")
        if self.weights and not self.as_json:
            raise ConfigError("--weights without --json", expected="--json --weights: all weights, for programs")
        if self.out is not None:
            check_place(self.out)
            if Path(self.out).suffix.lower() not in (".html", ".htm"):
                raise ConfigError(f"--out {self.out}", expected="a page: FILE.html")


def check_place(out: str) -> None:
    """Before any work is done for it."""
    if Path(out).exists():
        raise DataError(f"{out} is there already", advice="choose another --out")
    if not Path(out).parent.is_dir():
        raise DataError(f"{out} cannot be written: there is no folder {Path(out).parent}")


def show_maps(words: list[str], wanted: Wanted) -> None:
    """A page; or the maps for programs, or in letters."""
    wanted.check()
    if len(words) == 1:
        raise ConfigError(f"nothing for {words[0]} to look at", expected='weft attention RUN "a text", or an image')
    if len(words) > 3 or (len(words) == 3 and wanted.pair is not None):
        raise ConfigError(f"{len(words) - 1} inputs", expected="one text or image, or a text and its pair; in quotes")
    from weft.tasks import load

    given = sys.stdin.read() if words[1] == "-" else words[1]
    run = load(words[0])
    whole = run.attention(given, words[2] if len(words) == 3 else wanted.pair, target=wanted.target)
    view = whole.only(wanted.layer, wanted.head)
    if wanted.as_json:
        typer.echo(json.dumps(told(words[0], whole, view, wanted), ensure_ascii=False))
    elif wanted.as_text:
        from weft.cli.attention_text import drawn

        for line in drawn(whole.only(wanted.layer or 1, wanted.head or 1), (wanted.layer or 1, wanted.head or 1)):
            typer.echo(line)
    else:
        for line in _facts(view):
            typer.echo(line)
    if wanted.out is not None or not (wanted.as_json or wanted.as_text):
        _write(view, Path(wanted.out) if wanted.out is not None else _free())


def _free() -> Path:
    """A name that nothing has yet in this folder."""
    names = (Path("attention.html" if n == 1 else f"attention-{n}.html") for n in count(1))
    return next(name for name in names if not name.exists())


def _write(view: AttentionView, path: Path) -> None:
    from weft.report import attention_page

    text = attention_page(view)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}", advice="choose another --out") from None
    typer.echo(f"open {path}", err=True)


def _facts(view: AttentionView) -> Iterator[str]:
    yield f"{view.family}: {view.title}"
    yield from (f"  {name}: {value}" for name, value in view.facts.items())
    for part, maps in view.parts.items():
        layers, heads = len(maps), sum(len(one.weights) for one in maps)
        yield f"  {part}: {layers} layer{'s' * (layers > 1)}, {heads} head{'s' * (heads > 1)}"


# -- for programs -----------------------------------------------------------------------------


def told(run: str, whole: AttentionView, view: AttentionView, wanted: Wanted) -> dict[str, Any]:
    """Names, parts and labels of all maps, and of every head in a few numbers what it does; with `--weights` all."""
    numbers = {one.name: place for maps in whole.parts.values() for place, one in enumerate(maps, 1)}
    found: dict[str, Any] = {
        "run": run,
        "family": view.family,
        "input": view.title,
        "facts": dict(view.facts),
        "maps": [_map(one, numbers[one.name], wanted) for one in view.maps],
    }
    if wanted.weights:
        found["rollouts"] = {part: _rounded(weights) for part, weights in view.rollouts.items()}
    return found


def _map(one: MapView, layer: int, wanted: Wanted) -> dict[str, Any]:
    grid = one.answering.grid

    def head(number: int, weights: Any) -> dict[str, Any]:
        more = {"weights": _rounded(weights)} if wanted.weights else {}
        return {"head": number, **_head(weights, shares=one.are_shares), **more}

    return {
        "name": one.name,
        "part": one.part,
        "layer": layer,
        "asking": one.asking.labels,
        "answering": one.answering.labels,
        "grid": None if grid is None else [grid.rows, grid.columns],
        "rows": one.rows,
        "heads": [head(number, weights) for number, weights in enumerate(one.weights, wanted.head or 1)],
    }


def _head(weights: Any, *, shares: bool) -> dict[str, Any]:
    """`largest`: the largest weight of a row, on average; `entropy`: in nats, on average, where weights are shares;
    `looks_at`: the number of the column that each row looks at most, from 0."""
    import numpy as np

    table = weights.astype(np.float64)
    logs = np.log(table, out=np.zeros_like(table), where=table > 0)
    return {
        "largest": round(float(table.max(-1).mean()), DIGITS),
        "entropy": round(float(-(table * logs).sum(-1).mean()), DIGITS) if shares else None,
        "looks_at": table.argmax(-1).tolist(),
    }


def _rounded(weights: Any) -> Any:
    return weights.astype("float64").round(DIGITS).tolist()
