"""What `weft inspect` finds inside a model as one chart, drawn by matplotlib: heads, reach, gradients."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from weft.report.figures import new_figure, write_figure

MEASURES = (
    ("relative_entropy", "entropy, of the largest possible"),
    ("largest", "largest weight"),
    ("saturated", "saturated rows"),
)
MOST_CHARTS = 12  # grids of a reach that are drawn


def write_inside(told: Mapping[str, Any], path: Path) -> None:
    """The sections that are there, one below the other."""
    drawn = [(name, draw) for name, draw in (("health", _health), ("reach", _reach), ("flow", _flow)) if name in told]
    figure = new_figure(11, 4.2 * len(drawn))
    parts: Any = figure.subfigures(len(drawn), 1, squeeze=False)
    for part, (name, draw) in zip(parts[:, 0], drawn, strict=True):
        draw(part, told[name])
    write_figure(figure, path)


def _health(part: Any, told: Mapping[str, Any]) -> None:
    """Layers from above, heads from the left, a panel for each number."""
    layers = [layer for layer in told["layers"] if layer.get("heads")]
    part.suptitle("Softmax health")
    panels = part.subplots(1, len(MEASURES), squeeze=False)[0]
    names = [f"{layer['part']} {layer['layer']}".strip() for layer in layers]
    most = max((len(layer["heads"]) for layer in layers), default=1)
    for panel, (key, title) in zip(panels, MEASURES, strict=True):
        table = np.full((max(1, len(layers)), most), np.nan)
        for row, layer in enumerate(layers):
            table[row, : len(layer["heads"])] = [head[key] for head in layer["heads"]]
        shown = panel.imshow(table, vmin=0, vmax=1, cmap="cividis", aspect="auto")
        panel.set(title=title, xlabel="head", xticks=range(most), xticklabels=range(1, most + 1))
        panel.set_yticks(range(len(names)), names, fontsize="small")
    part.colorbar(shown, ax=panels)


def _reach(part: Any, told: Mapping[str, Any]) -> None:
    """Rows are layers, columns positions; of a chart, a grid for each layer."""
    table = np.array([[int(cell) for cell in row] for row in told["predicted"]])
    part.suptitle(f"What position {told['position']} can see after each layer")
    own = told["sources"] + told["position"]
    if told["grid"] is None:
        panel = part.subplots()
        panel.imshow(table, vmin=0, vmax=1, cmap="Blues", aspect="auto", interpolation="nearest")
        panel.axvline(own, color="darkorange", linewidth=1)
        if told["sources"]:
            panel.axvline(told["sources"] - 0.5, color="black", linewidth=1)
        panel.set(xlabel="input: source, then what is written" if told["sources"] else "input", ylabel="after layer")
        panel.set_yticks(range(len(table)), _counted(told), fontsize="small")
        return
    rows, columns = told["grid"]
    before, count = table.shape[1] - rows * columns, min(len(table), MOST_CHARTS)
    across = min(count, 4)
    panels = part.subplots(-(-count // across), across, squeeze=False).ravel()
    for panel in panels:
        panel.axis("off")
    for panel, row, title in zip(panels, table, _counted(told), strict=False):
        panel.imshow(row[before:].reshape(rows, columns), vmin=0, vmax=1, cmap="Blues", interpolation="nearest")
        if own >= before:
            panel.plot((own - before) % columns, (own - before) // columns, "o", color="darkorange", markersize=4)
        panel.set_title(title, fontsize="small")


def _counted(told: Mapping[str, Any]) -> list[str]:
    return [f"{name}: {count:,}" for name, count in zip(told["layers"], told["seen"], strict=True)]


def _flow(part: Any, told: Mapping[str, Any]) -> None:
    """Depth, and beside it distance where there is any."""
    norm = f", {told['norm']}-norm" if told["norm"] else ""
    part.suptitle(f"Gradient of the loss on held-out input{norm}")
    panels = part.subplots(1, 2 if told.get("distance") else 1, squeeze=False)[0]
    for when, style in (("now", "-o"), ("start", "--s")):
        for flow in told[when]:
            stack = flow["layers"][0]["part"]
            if any(flow["stream"]):
                label = f"{stack} {when}".strip() if when == "now" else f"{stack} at the start".strip()
                panels[0].plot(range(1, len(flow["stream"]) + 1), flow["stream"], style, label=label, markersize=4)
    panels[0].set(xlabel="before layer (the last: after all)", ylabel="norm at the stream", yscale="log")
    panels[0].xaxis.get_major_locator().set_params(integer=True)
    panels[0].legend(fontsize="small")
    if told.get("distance"):
        panels[1].plot(range(len(told["distance"])), [max(value, 1e-20) for value in told["distance"]])
        panels[1].set(xlabel="tokens before", ylabel="relative to the largest", yscale="log")
