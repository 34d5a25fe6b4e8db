"""How training went: loss, what was held out, learning rate and gradients, over steps and over time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from weft.pages import Line, beside, figure, line_chart, table
from weft.pages.charts import HALF, Point, smoothed
from weft.report.run_files import RunFiles

ROWS = 40  # of a table behind a chart
STRETCHES = 120  # points of a line that is smoothed
OTHERS = (  # metrics that have a curve beside the loss, where they are measured while training; then those of the task
    *("bits_per_byte", "accuracy", "macro_f1", "micro_f1", "exact_match", "spearman", "pearson", "bleu", "chrf"),
    "masked_accuracy",
)


def curves(files: RunFiles) -> str:
    """Charts with a table behind each; a run of one step has none."""
    if len(files.steps) < 2:
        return "<p>There are no steps to draw: all of it was learned at once.</p>\n" + validation(files)
    last = files.steps[-1]
    told = (
        f"<p>{last['step']:,} steps, {last.get('tokens', 0):,} {files.words.read}. The line is the "
        f"loss of the steps in {files.words.unit}, smoothed; the dots are measured on what was held out."
        "</p>\n"
    )
    return told + _loss(files) + _others(files) + _learning(files) + validation(files)


def _loss(files: RunFiles) -> str:
    unit = files.words.unit
    over_steps = _losses(files, lambda step: float(step["step"]), "steps", f"Loss over steps, {unit}")
    if not files.seconds:
        return beside(over_steps)
    minutes = max(files.seconds.values()) > 300
    clock, across = (60.0, "minutes of training") if minutes else (1.0, "seconds of training")
    over_time = _losses(
        files, lambda step: files.seconds.get(step["step"], 0.0) / clock, across, f"Loss over time, {unit}"
    )
    return beside(over_steps, over_time)


def _losses(files: RunFiles, at: Callable[[dict[str, Any]], float], across: str, title: str) -> str:
    learned = smoothed([(at(step), _number(step.get("loss"))) for step in files.steps], STRETCHES)
    measured = [(at(step), _number(step["validation_loss"])) for step in files.checks]
    lines = [Line("learned from", learned), Line("held out", measured, dots=True, line=len(measured) > 1)]
    lines = [line for line in lines if line.points]
    chart = line_chart(lines, across=across, up="loss", zero=True, size=HALF)
    rows = [(line.name, *point) for line in lines for point in smoothed(line.points, ROWS)]
    return figure(title, chart, ("line", across, "loss"), rows)


def _others(files: RunFiles) -> str:
    """What else was measured on what was held out, if it was measured more than once."""
    drawn = []
    for name in dict.fromkeys((*OTHERS, *files.words.matter)):
        title = files.words.metric(name).title
        points = [
            (float(check["step"]), _number(check.get(key)))
            for check in files.checks
            for key in (f"validation_{name}", name)
            if key in check
        ]
        if len(points) > 1:
            drawn.append(_small(f"Held out: {title}", points, title))
    return beside(*drawn) if drawn else ""


def _learning(files: RunFiles) -> str:
    named = {"learning_rate": "Learning rate", "gradient_norm": "Length of the gradient"}
    drawn = []
    for key, title in named.items():
        points = [(float(step["step"]), _number(step[key])) for step in files.steps if step.get(key) is not None]
        if len(points) > 1:
            drawn.append(_small(title, smoothed(points, STRETCHES), title.lower()))
    return beside(*drawn) if drawn else ""


def _small(title: str, points: list[Point], up: str) -> str:
    line = Line(title, points, dots=len(points) < 30)
    chart = line_chart([line], across="steps", up=up, zero=True, size=HALF)
    return figure(title, chart, ("step", up), smoothed(points, ROWS))


def validation(files: RunFiles) -> str:
    """A row for each evaluation, with all that was measured in it."""
    checks = files.checks
    if not checks:
        return ""
    names = list(checks[-1])
    names = [name for name in names[names.index("validation_loss") :] if name != "seconds"]
    heads = ("step", *(name.removeprefix("validation_").replace("_", " ") for name in names))
    rows = [(check["step"], *(check.get(name) for name in names)) for check in checks]
    title = "Everything that was measured on what was held out"
    return f"<details><summary>{title}</summary>{table(heads, rows, caption=title)}</details>\n"


def _number(value: Any) -> float:
    """What is not there or infinite leaves a gap."""
    return float(value) if isinstance(value, int | float) else math.nan
