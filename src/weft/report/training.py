"""The report of a training run: how the loss fell, and what the run was made of."""

from __future__ import annotations

import html
import json
import math
from pathlib import Path
from typing import Any

from weft.checkpoints.files import read_json

WIDTH, HEIGHT, LEFT, BOTTOM = 720, 300, 56, 36
POINTS = 400  # of a curve; more than a screen shows
MANY = 30  # classes; of more, the table of confusions is left out

STYLE = """
:root { color-scheme: light dark; --line: #2563c9; --dots: #c2410c; --grid: #8884; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; }
svg { width: 100%; height: auto; } text { fill: currentColor; font-size: 12px; }
table { border-collapse: collapse; } td, th { padding: .15rem .8rem .15rem 0; text-align: left; }
td { overflow-wrap: anywhere; vertical-align: top; }
.wide { overflow-x: auto; } .wide td { white-space: nowrap; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
"""


UNITS = {
    "generate": "nats per token",
    "fill": "nats",
    "classify": "nats per example",
    "translate": "nats per token",
    "embed": "nats per example",
}
READ = {
    "generate": "tokens read",
    "fill": "questions answered",
    "classify": "examples read",
    "translate": "tokens written",
    "embed": "words read",
}


def training_report(run: Path) -> str:
    """The page as text, from the files of the run directory."""
    config = read_json(run / "config.json")
    task = str(config.get("task", "generate"))
    steps = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    checks = [step for step in steps if "validation_loss" in step]
    name, unit = html.escape(run.name), UNITS.get(task, "nats")
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{name}</title><style>{STYLE}</style></head><body>
<h1>{name}</h1>
<p>{len(steps):,} steps, {steps[-1]["tokens"] if steps else 0:,} {READ.get(task, "tokens read")}. The line is the loss
of each step in {unit}, smoothed; the dots are measured on what was held out.</p>
{_chart(steps, checks, unit)}
<h2>Measured on what was held out</h2>
{_checks(checks)}
{_tested(run / "test.json")}{_by_length(run)}<h2>Settings</h2>
{_table(["setting", "value"], [[name, str(value)] for name, value in _flat(config)])}
</body></html>
"""


def _checks(checks: list[dict[str, Any]]) -> str:
    """A row for each evaluation, with all that was measured in it."""
    last = checks[-1] if checks else {}
    since = list(last).index("validation_loss") if checks else 0
    names = [name for name in list(last)[since:] if name != "seconds"]
    heads = ["step", *(name.removeprefix("validation_").replace("_", " ") for name in names)]
    return _table(heads, [[check["step"], *(check.get(name) for name in names)] for check in checks])


def _tested(path: Path) -> str:
    """What the test at the end found: all numbers, then each class and what it was taken for."""
    if not path.exists():
        return ""
    found = read_json(path)
    numbers = [[name.replace("_", " "), value] for name, value in found.items() if isinstance(value, int | float)]
    page = f"<h2>The test at the end</h2>\n{_table(['measure', 'value'], numbers)}\n"
    classes = found.get("classes")
    if isinstance(classes, dict) and classes:
        heads = ["class", "precision", "recall", "F1", "examples"]
        keys = ("precision", "recall", "f1", "examples")
        page += "<h3>Each class</h3>\n"
        page += _table(heads, [[name, *(scores.get(key) for key in keys)] for name, scores in classes.items()]) + "\n"
    confusion = found.get("confusion")
    if isinstance(confusion, list) and isinstance(classes, dict) and len(classes) <= MANY:
        page += "<h3>Which class (row) was taken for which (column)</h3>\n"
        rows = [[name, *row] for name, row in zip(classes, confusion, strict=True)]
        page += f'<div class="wide">{_table(["", *classes], rows)}</div>\n'
    return page


def _by_length(run: Path) -> str:
    """Translations by the length of their sources: of the test, or of what was held out."""
    tested, held_out = run / "test.json", run / "by_length.json"
    rows = read_json(tested).get("by_length") if tested.exists() else read_json(held_out) if held_out.exists() else None
    if not isinstance(rows, list) or not rows:
        return ""
    names = {"words": "words of the source", "pairs": "pairs", "bleu": "BLEU", "exact_match": "exact match"}
    shown = [name for name in names if name in rows[0]]
    table = _table([names[name] for name in shown], [[row.get(name) for name in shown] for row in rows])
    return f"<h2>By the length of the source</h2>\n{table}\n"


def _chart(steps: list[dict[str, Any]], checks: list[dict[str, Any]], unit: str) -> str:
    if len(steps) < 2:
        return "<p>Too few steps for a curve.</p>"
    curve = _smooth([step["loss"] for step in steps])
    values = [loss for _, loss in curve] + [c["validation_loss"] for c in checks]
    low, high = math.floor(min(values) * 5) / 5, math.ceil(max(values) * 5) / 5
    last = steps[-1]["step"]

    def place(step: float, loss: float) -> tuple[float, float]:
        x = LEFT + (WIDTH - LEFT - 10) * step / last
        return round(x, 1), round(10 + (HEIGHT - BOTTOM - 10) * (high - loss) / max(1e-9, high - low), 1)

    line = " ".join(f"{x},{y}" for x, y in (place(step, loss) for step, loss in curve))
    dots = "".join(
        f'<circle cx="{x}" cy="{y}" r="4" fill="var(--dots)"/>'
        for x, y in (place(c["step"], c["validation_loss"]) for c in checks)
    )
    grid = "".join(_grid_line(low + (high - low) * i / 4, place) for i in range(5))
    label = f"Loss from {curve[0][1]:.2f} to {curve[-1][1]:.2f} {unit} over {last} steps"
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{grid}'
        f'<polyline points="{line}" fill="none" stroke="var(--line)" stroke-width="2"/>{dots}'
        f'<text x="{LEFT}" y="{HEIGHT - 12}">step 1</text>'
        f'<text x="{WIDTH - 10}" y="{HEIGHT - 12}" text-anchor="end">step {last}</text></svg>'
    )


def _grid_line(loss: float, place: Any) -> str:
    _, y = place(0, loss)
    return (
        f'<line x1="{LEFT}" x2="{WIDTH - 10}" y1="{y}" y2="{y}" stroke="var(--grid)"/>'
        f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{loss:.2f}</text>'
    )


def _smooth(losses: list[float]) -> list[tuple[float, float]]:
    """(step, mean loss) of stretches of equal length, at most POINTS of them."""
    size = max(1, math.ceil(len(losses) / POINTS), len(losses) // 60)
    stretches = [(i, losses[i : i + size]) for i in range(0, len(losses), size)]
    return [(i + len(part) / 2 + 0.5, sum(part) / len(part)) for i, part in stretches]


def _flat(table: dict[str, Any], path: str = "") -> list[tuple[str, Any]]:
    rows = []
    for key, value in table.items():
        rows += _flat(value, f"{path}{key}.") if isinstance(value, dict) else [(path + key, value)]
    return rows


def _table(heads: list[str], rows: list[list[Any]]) -> str:
    top = "".join(f"<th>{html.escape(head)}</th>" for head in heads)
    body = "".join("<tr>" + "".join(_cell(value) for value in row) + "</tr>" for row in rows)
    return f"<table><tr>{top}</tr>{body}</table>"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f'<td class="number">{value:.4g}</td>'
    if isinstance(value, int) and not isinstance(value, bool):
        return f'<td class="number">{value:,}</td>'
    return f"<td>{html.escape(str(value))}</td>"
