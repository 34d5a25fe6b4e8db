"""The same charts as one PNG, drawn by matplotlib, which is not needed for anything else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from weft.checkpoints.files import write_whole
from weft.comparison.charts import curves_of, length_curves, measures_of, quality_over_seconds
from weft.comparison.result import Comparison
from weft.pages.axes import span, spread
from weft.pages.charts import colour_of

MATPLOTLIB_DASH = {"": "-", "6 3": "--", "2 3": ":", "9 3 2 3": "-."}
LETTERS = 24  # of a name on an axis


def write_chart(result: Comparison, path: Path) -> None:
    """Curves above, one bar for each variant and measure below; raises ImportError without matplotlib."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    measures, (shown, curves) = measures_of(result), curves_of(result)
    measured, by_length = length_curves(result)
    tall = 1.2 + 0.32 * len(result.rows)
    figure = Figure(figsize=(17 if by_length else 13, 5.2 + tall), layout="constrained", dpi=110)
    FigureCanvasAgg(figure)
    parts: Any = figure.subfigures(2, 1, height_ratios=[5.2, tall])
    above, below = parts
    axes = above.subplots(1, 4 if by_length else 3)
    for column, title in ((0, "steps"), (1, "seconds of training")):
        for curve in curves:
            across = [point[column] for point in curve.points]
            style = {"color": curve.colour, "linestyle": MATPLOTLIB_DASH[curve.dash], "label": _short(curve.name)}
            axes[column].plot(across, [point[2] for point in curve.points], marker="o", markersize=3, **style)
        axes[column].set(xlabel=title, ylabel=shown)
        axes[column].set_xlim(left=0)
    if curves:
        axes[0].legend(fontsize="small", ncols=1 + len(curves) // 12)
    _over_seconds(axes[2], result)
    for curve in by_length:
        style = {"color": curve.colour, "linestyle": MATPLOTLIB_DASH[curve.dash]}
        across = [words for _, words, _ in curve.points]
        axes[3].plot(across, [value for *_, value in curve.points], marker="o", markersize=3, **style)
        axes[3].set(xlabel="words of the source", ylabel=measured)
    for axis in axes:
        axis.grid(alpha=0.3)
    if measures:
        _bars(below.subplots(1, len(measures), squeeze=False)[0], measures)
    figure.suptitle(result.path.name, parse_math=False)
    write_whole(path, lambda beside: figure.savefig(beside, format="png"))


def _over_seconds(axis: Any, result: Comparison) -> None:
    dots = quality_over_seconds(result)
    title = result.title
    axis.set(xlabel="seconds, all in all", ylabel=title)
    if not dots:
        return
    for dot in dots:
        axis.plot([dot.across], [dot.up], "o", color=colour_of(dot.place or 0))
    latest = max(dot.across for dot in dots)
    axis.set_xlim(0, 1.1 * latest)
    low, high = span([dot.up for dot in dots])
    low, high = low - 0.15 * (high - low), high + 0.15 * (high - low)
    axis.set_ylim(low, high)
    heights = spread([dot.up for dot in dots], (high - low) / 18, low, high)
    beside = 0.04 * axis.get_xlim()[1]
    for dot, height in zip(dots, heights, strict=True):
        left = dot.across > 0.6 * latest
        axis.annotate(
            _short(dot.name),
            (dot.across, dot.up),
            (dot.across - beside if left else dot.across + beside, height),
            ha="right" if left else "left",
            va="center",
            fontsize="small",
            arrowprops={"arrowstyle": "-", "color": colour_of(dot.place or 0), "linewidth": 0.8},
        )


def _bars(axes: Any, measures: Any) -> None:
    """From zero, the first variant on top; names stand beside the first axis."""
    names = [bar.name for bar in measures[0].values]
    for axis, measure in zip(axes, measures, strict=True):
        values = [bar.value for bar in measure.values]
        bars = axis.barh(range(len(names)), values, color=[colour_of(bar.place or 0) for bar in measure.values])
        axis.bar_label(bars, [bar.words or "not known" for bar in measure.values], padding=3, fontsize="small")
        axis.set_yticks(range(len(names)), [_short(name) if axis is axes[0] else "" for name in names])
        axis.invert_yaxis()
        axis.set_xlim(0, 1.35 * max(1e-12, *values))
        axis.set_xticks([])
        axis.set_title(measure.title, fontsize="medium")
        axis.spines[["top", "right", "bottom"]].set_visible(False)


def _short(name: str) -> str:
    """Names of matplotlib's own begin with an underscore and would not be shown."""
    return (name if len(name) <= LETTERS else name[: LETTERS - 1] + "…").lstrip("_") or "?"
