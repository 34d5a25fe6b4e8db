"""Inside the model: what its heads look at for a few inputs, and how healthy their softmax is."""

from __future__ import annotations

import html
from typing import Any

import numpy as np
import torch

from weft.analysis import capture
from weft.analysis.softmax_health import LayerHealth, health_sentences, softmax_health
from weft.analysis.view import AttentionView
from weft.pages import Line, beside, figure, line_chart, table
from weft.pages.charts import HALF
from weft.pages.png import png_pixels
from weft.report.attention import Section, attention_section
from weft.report.run_files import RunFiles
from weft.tasks.attention_view.view import view_of
from weft.tasks.run import Run
from weft.tasks.use import has_attention

LARGEST = 60_000_000  # parameters; above, looking takes more than a few seconds
SENTENCES = 6
MEASURES = {
    "relative_entropy": "entropy, of the largest possible",
    "largest": "largest weight",
    "saturated": "saturated rows",
    "score_variance": "variance of scores",
    "relative_gradient": "gradient that passes",
}


def inside(files: RunFiles) -> Section:
    """Empty for a model without attention, for one that is large, and where there is no input to look at."""
    inputs, config = files.examples.get("inside") or [], files.run.model_config
    if not inputs or not has_attention(config):
        return Section("", "", "")
    if sum(p.numel() for p in config.skeleton().parameters()) > LARGEST:
        return Section(
            f"<p>It is too large to be looked into here: <code>weft attention {_path(files)} INPUT</code></p>", "", ""
        )
    views, looks = [], []
    with torch.random.fork_rng(devices=[]):
        for given in inputs:
            with capture(files.run.model) as maps:
                views.append(_view(files.run, given))
            looks.append(dict(maps))
    sections = [attention_section(view, f"inside-{n}", level=4) for n, view in enumerate(views, 1)]
    shown = "".join(
        f"<h3>{html.escape(view.title)}</h3>\n{section.html}\n" for view, section in zip(views, sections, strict=True)
    )
    told = _health(softmax_health(looks)) + _watched(files)
    more = f'<p class="soft">For any other input: <code>weft attention {_path(files)} INPUT</code></p>\n'
    return Section(told + shown + more, sections[0].style, sections[0].script)


def _watched(files: RunFiles) -> str:
    """Of a run that was watched while it learned: the entropy of each layer, over steps."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for look in files.health:
        for layer in look.get("layers", []):
            values = [head["relative_entropy"] for head in layer.get("heads", [])]
            if values:
                lines.setdefault(layer["name"], []).append((float(look["step"]), sum(values) / len(values)))
    if not lines:
        return ""
    title = "Entropy of each layer while it learned, of the largest possible"
    drawn = [Line(name, points, dots=True) for name, points in lines.items()]
    image = line_chart(drawn, across="steps", up="entropy", zero=True, size=HALF)
    rows = [(name, int(step), value) for name, points in lines.items() for step, value in points]
    return beside(figure(title, image, ("layer", "step", "entropy"), rows))


def _path(files: RunFiles) -> str:
    return html.escape(str(files.path))


def _view(run: Run, given: list[str]) -> AttentionView:
    """Of a text, of two, or of an image that is written down as a PNG."""
    if given[0].startswith("data:image/png"):
        pixels, width, height, channels = png_pixels(given[0])
        return view_of(run, np.frombuffer(bytearray(pixels), dtype=np.uint8).reshape(height, width, channels))
    return view_of(run, given[0], pair=given[1] if len(given) > 1 else None)


def _health(layers: list[LayerHealth]) -> str:
    """What stands out in sentences, and all numbers behind them."""
    told = "".join(f"<li>{html.escape(text)}</li>" for text in health_sentences(layers, SENTENCES))
    rows: list[tuple[Any, ...]] = [
        (layer.place.head(number), *(float(getattr(head, name)) for name in MEASURES))
        for layer in layers
        for number, head in enumerate(layer.heads, 1)
    ]
    if not rows:
        return f"<h3>Health of its softmax</h3>\n<ul>{told}</ul>\n" if told else ""
    numbers = table(("head", *MEASURES.values()), rows, caption="Softmax health of every head, on the inputs below")
    return (
        f"<h3>Health of its softmax</h3>\n<ul>{told}</ul>\n<details><summary>All heads</summary>{numbers}</details>\n"
    )
