"""The columns of the table: what is shown of a row, under which title, in which unit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from weft.comparison.rows import Row
from weft.tasks.words import Metric

PLACES = {"test": "on test", "validation": "held out"}


def metric_title(rows: Sequence[Row], metric: Metric) -> str:
    """`bits per byte, held out`: the measure and what it was measured on."""
    where = next((row["measured_on"] for row in rows if "measured_on" in row), "validation")
    return f"{metric.title}, {PLACES[where]}"


def amount(value: float | None) -> str:
    """1.23 M: three digits and a unit, in powers of a thousand."""
    if value is None:
        return ""
    number = float(value)
    for unit in ("", " k", " M", " G", " T", " P"):
        if abs(number) < 999.5 or unit == " P":
            return f"{number:.0f}" if not unit else f"{number:.3g}{unit}"
        number /= 1000
    raise AssertionError


def _number(format_: str, scale: float = 1.0) -> Callable[[Any], str]:
    return lambda value: "" if value is None else format_.format(value / scale if scale != 1 else value)


_COLUMNS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("validation_loss", "loss, held out", _number("{:.4f}")),
    ("seconds", "seconds", _number("{:.1f}")),
    ("steps", "steps", _number("{:,}")),
    ("parameters", "parameters", amount),
    ("peak_memory", "peak MB", _number("{:,.0f}", 2**20)),
    ("flops", "FLOPs", amount),
)


def _shown(rows: Sequence[Row], name: str, metric: Metric) -> list[tuple[str, str, Callable[[Any], str]]]:
    """Quality, then what is known of any row."""
    quality = (name, metric_title(rows, metric), _number("{:.2f}" if name == "bleu" else "{:.4f}"))
    others = [c for c in _COLUMNS if c[0] != name and any(row.get(c[0]) is not None for row in rows)]
    return [quality, *others]


def titles(rows: Sequence[Row], name: str, metric: Metric) -> list[str]:
    """Above the columns."""
    return ["model", *(title for _, title, _ in _shown(rows, name, metric)), ""]


def cells(rows: Sequence[Row], name: str, metric: Metric, best: str | None) -> Iterator[list[str]]:
    """A list for each row; one without a result says how it stands."""
    columns = _shown(rows, name, metric)
    for row in rows:
        told = [form(row.get(key)) for key, _, form in columns]
        if row["status"] != "finished":
            told[0] = row["status"]
        yield [row["model"], *told, "best" if row["model"] == best else ""]
