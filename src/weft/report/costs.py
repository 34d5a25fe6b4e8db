"""What a model costs over its length and its width, drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from weft.report.figures import new_figure, write_figure

PANELS = (("flops", "operations of a step"), ("memory", "bytes at its peak"), ("seconds", "seconds of a step here"))


def _panel(axis: Any, along: str, points: list[dict[str, Any]], key: str) -> None:
    """One number over the length or the width; of operations, attention's scores too. What does not fit is left out."""
    known = [point for point in points if point[key] is not None]
    across = [point[along] for point in known]
    axis.plot(across, [point[key] for point in known], marker="o", label="all")
    scores = [point["flops"] * point["scores"] for point in known] if key == "flops" else []
    if any(scores):
        axis.plot(across, scores, marker="s", ls="--", label="attention scores")
        axis.legend()
    if across:
        axis.set_xscale("log", base=2)
        axis.set_yscale("log" if all(point[key] for point in known) and all(scores or [1]) else "symlog")
    axis.grid(alpha=0.3)


def write_curves(path: Path, name: str, curves: dict[str, list[dict[str, Any]]]) -> None:
    """Operations of a step and attention's scores among them, memory and seconds, over length and width; PNG or SVG."""
    drawn = [
        (key, title) for key, title in PANELS if any(p[key] is not None for points in curves.values() for p in points)
    ]
    figure = new_figure(4.4 * len(drawn), 3.6 * len(curves))
    axes: Any = figure.subplots(len(curves), len(drawn), squeeze=False)
    for row, (along, points) in zip(axes, curves.items(), strict=True):
        for axis, (key, title) in zip(row, drawn, strict=True):
            _panel(axis, along, points, key)
            axis.set(xlabel=along, ylabel=title)
    figure.suptitle(name, parse_math=False)
    write_figure(figure, path)
