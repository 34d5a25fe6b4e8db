"""What a model costs over its length and its width, drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from weft.checkpoints.files import write_whole
from weft.errors import UnsupportedError


def write_curves(path: Path, name: str, curves: dict[str, list[dict[str, Any]]]) -> None:
    """Operations of a step, and the share of attention's scores in them, over length and width; PNG or SVG."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise UnsupportedError("pictures need matplotlib", advice="pip install 'weft[plots]'") from None
    figure = Figure(figsize=(11, 4.2), layout="constrained", dpi=110)
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots(1, 2)
    for axis, (along, points) in zip(axes, curves.items(), strict=True):
        across = [point[along] for point in points]
        axis.plot(across, [point["flops"] for point in points], marker="o", label="all operations")
        axis.plot(across, [point["flops"] * point["scores"] for point in points], marker="s", ls="--", label="scores")
        axis.set(xlabel=along, ylabel="operations of a step")
        if across:
            axis.set_xscale("log", base=2)
            axis.set_yscale("symlog" if not all(point["scores"] for point in points) else "log")
        axis.grid(alpha=0.3)
        axis.legend()
    figure.suptitle(name, parse_math=False)
    kind = path.suffix.removeprefix(".")
    write_whole(path, lambda beside: figure.savefig(beside, format=kind))
