"""What is drawn, whoever draws it: curves, measures, colours, and axes with round numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from weft.compare.columns import NAMES, amount, metric_title
from weft.compare.comparison import Comparison
from weft.compare.rows import curve_of

# Seven that colour-blind people tell apart (Okabe and Ito 2008), in a middle brightness for light and dark pages
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1")
HELD_OUT = ("held-out loss", "validation_loss")
STRETCHES = 20  # of a curve that is smoothed
DASHES = ("", "6 3", "2 3", "9 3 2 3")  # once the colours are used up


@dataclass(frozen=True)
class Curve:
    """One variant: its name, how it is drawn, and (step, seconds, loss) of its evaluations."""

    name: str
    colour: str
    dash: str
    points: list[tuple[int, float, float]]


@dataclass(frozen=True)
class Measure:
    """One number of every finished variant: (name, colour, value, how it is written); unknown is 0 and no words."""

    title: str
    values: list[tuple[str, str, float, str]]


def colour_of(place: int) -> str:
    """Of the variant at this place; dashes tell those apart that share one."""
    return COLOURS[place % len(COLOURS)]


def dash_of(place: int) -> str:
    """How its line is interrupted."""
    return DASHES[place // len(COLOURS) % len(DASHES)]


def curves_of(result: Comparison) -> tuple[str, list[Curve]]:
    """What is shown, and a curve for each variant that has one: the held-out loss, or bits per byte where the tokens
    differ; the loss of training where nothing was measured on the way."""
    title, measure = ("bits per byte, held out", "bits_per_byte") if _tokens_differ(result) else HELD_OUT
    found = _curves(result, measure)
    if any(len(curve.points) > 1 for curve in found):
        return title, found
    return "training loss, smoothed", _curves(result, "loss", smooth=True)


def _tokens_differ(result: Comparison) -> bool:
    """Whether a loss per token of one variant is another measure than that of the next."""
    varied = {key for row in result.rows for key in row["settings"]}
    return result.metric == "bits_per_byte" and any(key.startswith("tokenizer.") for key in varied)


def _curves(result: Comparison, measure: str, *, smooth: bool = False) -> list[Curve]:
    found = []
    for place, row in enumerate(result.rows):
        points = curve_of(Path(row["run"]), measure) if row["run"] else []
        if smooth:
            points = _smoothed(points)
        if points:
            found.append(Curve(row["model"], colour_of(place), dash_of(place), points))
    return found


def length_curves(result: Comparison) -> tuple[str, list[Curve]]:
    """How good translations are by the length of their sources: (pairs, mean words, measure) of each bucket."""
    measure, table = result.by_length()
    found = [
        Curve(
            row["model"],
            colour_of(place),
            dash_of(place),
            [(line["pairs"], line["mean_words"], line[measure]) for line in row["by_length"]],
        )
        for place, row in enumerate(result.rows)
        if table and row["model"] in table[0][2:]
    ]
    return NAMES.get(measure, "exact matches"), found


def _smoothed(points: list[tuple[int, float, float]]) -> list[tuple[int, float, float]]:
    """The mean of stretches of equal length, each standing at its end."""
    size = max(1, math.ceil(len(points) / STRETCHES))
    stretches = [points[start : start + size] for start in range(0, len(points), size)]
    return [(*part[-1][:2], sum(loss for *_, loss in part) / len(part)) for part in stretches]


def measures_of(result: Comparison) -> list[Measure]:
    """Quality, seconds, peak memory, parameters and operations, as far as they are known."""
    digits = "{:.2f}" if result.metric == "bleu" else "{:.4f}"
    wanted = (
        (result.metric, metric_title(result.rows, result.metric), 1.0, digits.format),
        ("seconds", "seconds", 1.0, "{:.1f}".format),
        ("peak_memory", "peak memory, MB", 2**20, "{:,.0f}".format),
        ("parameters", "parameters", 1.0, amount),
        ("flops", "training FLOPs", 1.0, amount),
    )
    found = []
    for key, title, scale, form in wanted:
        values = [
            (
                row["model"],
                colour_of(place),
                (row.get(key) or 0) / scale,
                form(row[key] / scale) if row.get(key) else "",
            )
            for place, row in enumerate(result.rows)
            if row["status"] == "finished"
        ]
        if any(words for *_, words in values):
            found.append(Measure(title, values))
    return found


def quality_over_seconds(result: Comparison) -> list[tuple[str, str, float, float]]:
    """(name, colour, seconds, quality) of the finished ones."""
    return [
        (row["model"], colour_of(place), row["seconds"], row[result.metric])
        for place, row in enumerate(result.rows)
        if row["status"] == "finished" and row.get(result.metric) is not None
    ]


def span(values: Sequence[float]) -> tuple[float, float]:
    """The least and the most, at least two percent apart: less looks like more than it is."""
    low, high = min(values), max(values)
    missing = max(0.02 * max(abs(low), abs(high)), 1e-6) - (high - low)
    return (low - missing / 2, high + missing / 2) if missing > 0 else (low, high)


def ticks(values: Sequence[float], count: int = 5) -> list[float]:
    """Round numbers around the values, about so many; the first and the last are the ends of the axis."""
    low, high = span(values)
    raw = (high - low) / max(1, count - 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * n for n in (1, 2, 2.5, 5, 10) if power * n >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(n * step, 12) for n in range(first, last + 1)]


def spread(places: Sequence[float], apart: float, low: float, high: float) -> list[float]:
    """The places moved as little as needed to be `apart` from each other, within the bounds if there is room."""
    order = sorted(range(len(places)), key=lambda n: places[n])
    moved = list(places)
    for before, after in itertools.pairwise(order):
        moved[after] = max(moved[after], moved[before] + apart)
    over = moved[order[-1]] - high if order else 0.0
    if over > 0:
        bound = high
        for n in reversed(order):
            moved[n] = min(moved[n], bound)
            bound = moved[n] - apart
    if order and moved[order[0]] < low:
        bound = low
        for n in order:
            moved[n] = max(moved[n], bound)
            bound = moved[n] + apart
    return moved
