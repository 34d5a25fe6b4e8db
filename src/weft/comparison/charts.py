"""What is drawn, whoever draws it: curves and measures, each with the colour of its variant."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from weft.comparison.columns import amount
from weft.comparison.result import Comparison
from weft.comparison.rows import curve_of
from weft.pages.charts import Bar, Dot, colour_of, dash_of

HELD_OUT = ("held-out loss", "validation_loss")
STRETCHES = 20  # of a curve that is smoothed


@dataclass(frozen=True)
class Curve:
    """One variant: its name, the place that decides how it is drawn, (step, seconds, loss) of its evaluations."""

    name: str
    place: int
    points: list[tuple[int, float, float]]

    @property
    def colour(self) -> str:
        """Of its line."""
        return colour_of(self.place)

    @property
    def dash(self) -> str:
        """How its line is interrupted."""
        return dash_of(self.place)


@dataclass(frozen=True)
class MetricBars:
    """One number of every finished variant; unknown is 0 and no words."""

    title: str
    values: list[Bar]


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
            found.append(Curve(row["model"], place, points))
    return found


def length_curves(result: Comparison) -> tuple[str, list[Curve]]:
    """How good translations are by the length of their sources: (pairs, mean words, measure) of each bucket."""
    measure, table = result.by_length()
    found = [
        Curve(
            row["model"],
            place,
            [(line["pairs"], line["mean_words"], line[measure]) for line in row["by_length"]],
        )
        for place, row in enumerate(result.rows)
        if table and row["model"] in table[0][2:]
    ]
    return result.words.metric(measure).title, found


def _smoothed(points: list[tuple[int, float, float]]) -> list[tuple[int, float, float]]:
    """The mean of stretches of equal length, each standing at its end."""
    size = max(1, math.ceil(len(points) / STRETCHES))
    stretches = [points[start : start + size] for start in range(0, len(points), size)]
    return [(*part[-1][:2], sum(loss for *_, loss in part) / len(part)) for part in stretches]


def measures_of(result: Comparison) -> list[MetricBars]:
    """Quality, seconds, peak memory, parameters and operations, as far as they are known."""
    digits = "{:.2f}" if result.metric == "bleu" else "{:.4f}"
    wanted = (
        (result.metric, result.title, 1.0, digits.format),
        ("seconds", "seconds", 1.0, "{:.1f}".format),
        ("peak_memory", "peak memory, MB", 2**20, "{:,.0f}".format),
        ("parameters", "parameters", 1.0, amount),
        ("flops", "training FLOPs", 1.0, amount),
    )
    found = []
    for key, title, scale, form in wanted:
        values = [
            Bar(
                row["model"],
                (row.get(key) or 0) / scale,
                form(row[key] / scale) if row.get(key) else "",
                place,
            )
            for place, row in enumerate(result.rows)
            if row["status"] == "finished"
        ]
        if any(bar.words for bar in values):
            found.append(MetricBars(title, values))
    return found


def quality_over_seconds(result: Comparison) -> list[Dot]:
    """Of the finished ones."""
    return [
        Dot(row["model"], row["seconds"], row[result.metric], place)
        for place, row in enumerate(result.rows)
        if row["status"] == "finished" and row.get(result.metric) is not None
    ]
