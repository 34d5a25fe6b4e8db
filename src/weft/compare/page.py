"""The page of a comparison: it stands alone, with a table behind every picture."""

from __future__ import annotations

import html
from collections.abc import Sequence

from weft.compare.charts import (
    Curve,
    Measure,
    curves_of,
    length_curves,
    measures_of,
    quality_over_seconds,
    spread,
    ticks,
)
from weft.compare.columns import metric_title
from weft.compare.comparison import Comparison
from weft.compare.variants import told

WIDTH, HEIGHT, LEFT, RIGHT, BOTTOM, TOP = 720, 300, 64, 16, 44, 12
BAR, GAP, NAMES, BAR_WIDTH = 18, 8, 156, 360
LETTERS = 20  # of a name beside a bar
SIZE = 12  # of letters in a picture

STYLE = """
:root { color-scheme: light dark; --grid: #8884; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
svg { width: 100%; height: auto; } text { fill: currentColor; font-size: 12px; }
table { border-collapse: collapse; } td, th { padding: .15rem .9rem .15rem 0; text-align: right; white-space: nowrap; }
th { font-weight: 600; border-bottom: 1px solid var(--grid); vertical-align: bottom; }
td { font-variant-numeric: tabular-nums; }
td:first-child, th:first-child { text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 9rem; }
.wide { overflow-x: auto; } .best td { font-weight: 600; }
ul.key { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; }
ul.key svg { width: 28px; height: 12px; margin-right: .4rem; }
.bars { display: grid; grid-template-columns: repeat(auto-fit, minmax(22rem, 1fr)); gap: 0 2rem; }
dt { font-weight: 600; } dd { margin: 0 0 .6rem 1rem; white-space: pre-wrap; overflow-wrap: anywhere; }
h2 { margin-top: 2rem; } h3 { font-size: 1rem; margin: .6rem 0 .2rem; }
"""


def page(result: Comparison) -> str:
    """The page as text, from the rows and the logs of the runs."""
    name, (shown, curves) = html.escape(result.path.name), curves_of(result)
    best = f" The best is <b>{html.escape(result.best)}</b>." if result.best else ""
    title = html.escape(metric_title(result.rows, result.metric))
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{name}</title><style>{STYLE}</style></head><body>
<h1>{name}</h1>
<p>{len(result.rows)} variants of one {html.escape(result.task)} run on the same data and split, judged by
{title}.{best}</p>
<div class="wide">{html_table(result)}</div>
{_reasons(result)}<h2>What each costs, and how good it is</h2>
<div class="bars">{"".join(_bars(measure) for measure in measures_of(result))}</div>
{_curves(curves, shown)}{_by_length(result)}{_over_seconds(result)}{_samples(result)}<h2>What differs</h2>
{_settings(result)}
</body></html>
"""


def html_table(result: Comparison) -> str:
    """All numbers."""
    return _table(result.table(), result.best)


def _table(table: Sequence[Sequence[str]], best: str | None = None) -> str:
    """Titles, then rows of cells; the row that begins with `best` stands out."""
    heads, *rows = table
    top = "".join(f"<th>{html.escape(head).replace(', ', '<br>')}</th>" for head in heads)
    body = "".join(
        f"<tr{' class=best' if best is not None and row[0] == best else ''}>"
        + "".join(f"<td>{html.escape(cell)}</td>" for cell in row)
        + "</tr>"
        for row in rows
    )
    return f"<table><tr>{top}</tr>{body}</table>"


def _reasons(result: Comparison) -> str:
    told_ = [(row["model"], row.get("reason") or row["note"]) for row in result.rows if {"reason", "note"} & set(row)]
    return "".join(
        f"<p><b>{html.escape(name)}</b>: {html.escape(reason.replace(chr(10), '; '))}</p>\n" for name, reason in told_
    )


def _samples(result: Comparison) -> str:
    """The same beginning, and how each goes on."""
    told_ = [(row["model"], row["sample"]) for row in result.rows if row.get("sample")]
    if not told_:
        return ""
    rows = "".join(
        f"<dt>{html.escape(name)}</dt><dd>{html.escape(sample['text'].strip())}</dd>" for name, sample in told_
    )
    return (
        f"<h2>What each makes of the same beginning</h2>\n<p>“{html.escape(told_[0][1]['prompt'])}”</p>\n"
        f"<dl>{rows}</dl>\n"
    )


def _settings(result: Comparison) -> str:
    rows = "".join(
        f"<tr><td>{html.escape(row['model'])}</td>"
        f'<td style="text-align: left">{html.escape(", ".join(told(row["settings"])))}</td></tr>'
        for row in result.rows
    )
    return f'<div class="wide"><table>{rows}</table></div>'


# -- pictures ---------------------------------------------------------------------------------


def _bars(measure: Measure) -> str:
    """One measure of all variants, from zero."""
    most = max(1e-12, *(value for _, _, value, _ in measure.values))
    height = len(measure.values) * (BAR + GAP)
    parts = []
    for n, (name, colour, value, words) in enumerate(measure.values):
        y, long = n * (BAR + GAP), (BAR_WIDTH - NAMES - 70) * max(0.0, value) / most
        shown = name if len(name) <= LETTERS else name[: LETTERS - 1] + "…"
        parts.append(
            f'<text x="{NAMES - 8}" y="{y + 14}" text-anchor="end">{html.escape(shown)}</text>'
            f'<rect x="{NAMES}" y="{y}" width="{long:.1f}" height="{BAR}" fill="{colour}"/>'
            f'<text x="{NAMES + long + 6:.1f}" y="{y + 14}">{html.escape(words) or "not known"}</text>'
        )
    told_ = ", ".join(f"{name} {words or 'not known'}" for name, _, _, words in measure.values)
    return (
        f"<figure style='margin: 0'><h3>{html.escape(measure.title)}</h3>"
        f'<svg viewBox="0 0 {BAR_WIDTH} {height}" role="img" '
        f'aria-label="{html.escape(f"{measure.title}: {told_}")}">{"".join(parts)}</svg></figure>'
    )


def _curves(curves: Sequence[Curve], what: str) -> str:
    """A measure over steps and over seconds, all variants in one picture each."""
    if not any(len(curve.points) > 1 for curve in curves):
        return ""
    return (
        f"<h2>{what[0].upper()}{what[1:]}, while they learned</h2>\n{_key(curves)}"
        f"{_lines(curves, 0, what, 'steps')}\n{_lines(curves, 1, what, 'seconds of training')}\n"
    )


def _by_length(result: Comparison) -> str:
    """Translations by the length of their sources: a picture if there are several lengths, and the table behind it."""
    what, curves = length_curves(result)
    if not curves:
        return ""
    drawn = ""
    if any(len(curve.points) > 1 for curve in curves):
        drawn = f"{_key(curves)}{_lines(curves, 1, what, 'words of the source, mean of each bucket')}\n"
    table = _table(result.by_length()[1])
    return f'<h2>{what} by the length of the source</h2>\n{drawn}<div class="wide">{table}</div>\n'


def _key(curves: Sequence[Curve]) -> str:
    """Which line is whose."""
    lines = "".join(
        f'<li><svg viewBox="0 0 28 12" aria-hidden="true"><line x1="0" x2="28" y1="6" y2="6" {_stroke(curve)}/></svg>'
        f"{html.escape(curve.name)}</li>"
        for curve in curves
    )
    return f'<ul class="key">{lines}</ul>\n'


def _stroke(curve: Curve) -> str:
    dash = f' stroke-dasharray="{curve.dash}"' if curve.dash else ""
    return f'stroke="{curve.colour}" stroke-width="2" fill="none"{dash}'


def _lines(curves: Sequence[Curve], column: int, what: str, title: str) -> str:
    frame = _Frame(
        [0.0, *(point[column] for curve in curves for point in curve.points)],
        [point[2] for curve in curves for point in curve.points],
    )
    drawn = []
    for curve in curves:
        places = [frame.place(point[column], point[2]) for point in curve.points]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{curve.colour}"/>' for x, y in places)
        drawn.append(f'<polyline points="{line}" {_stroke(curve)}/>{dots}')
    last = ", ".join(f"{curve.name} {curve.points[-1][2]:.3f}" for curve in curves)
    return frame.svg("".join(drawn), title, f"{what} over {title}; at the end: {last}")


def _over_seconds(result: Comparison) -> str:
    """A dot for each variant; labels are moved apart."""
    dots = quality_over_seconds(result)
    if len(dots) < 2:
        return ""
    title = metric_title(result.rows, result.metric)
    frame = _Frame([0.0, *(seconds for _, _, seconds, _ in dots)], [quality for *_, quality in dots])
    places = [frame.place(seconds, quality) for _, _, seconds, quality in dots]
    heights = spread([y for _, y in places], SIZE + 4, TOP + SIZE, HEIGHT - BOTTOM)
    parts = []
    for (name, colour, _, _), (x, y), height in zip(dots, places, heights, strict=True):
        left = x > LEFT + 0.6 * (WIDTH - LEFT - RIGHT)
        at, anchor = (x - 26, "end") if left else (x + 26, "start")
        parts.append(
            f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x - 22 if left else x + 22:.1f}" y2="{height:.1f}" '
            f'stroke="{colour}" stroke-width="1"/><circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>'
            f'<text x="{at:.1f}" y="{height + 4:.1f}" text-anchor="{anchor}">{html.escape(name)}</text>'
        )
    told_ = f"{title} over seconds: " + ", ".join(f"{name} {q:.3f} in {s:.0f} s" for name, _, s, q in dots)
    return f"<h2>{html.escape(title)} over seconds</h2>\n{frame.svg(''.join(parts), 'seconds, all in all', told_)}\n"


class _Frame:
    """Axes with round numbers around the values."""

    def __init__(self, across: Sequence[float], up: Sequence[float]) -> None:
        self.across, self.up = ticks(across, 7), ticks(up)

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Where a value stands in the picture."""
        (left, *_, right), (low, *_, high) = self.across, self.up
        wide, tall = WIDTH - LEFT - RIGHT, HEIGHT - BOTTOM - TOP
        return LEFT + wide * (x - left) / (right - left), TOP + tall * (high - y) / (high - low)

    def svg(self, drawn: str, title: str, told_: str) -> str:
        """The picture with its grid, in words too."""
        grid = ""
        for value in self.up:
            _, y = self.place(0, value)
            grid += f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="var(--grid)"/>'
            grid += f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'
        for value in self.across:
            x, _ = self.place(value, self.up[0])
            grid += f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{value:,g}</text>'
        words = f'<text x="{(LEFT + WIDTH) / 2:.0f}" y="{HEIGHT - 6}" text-anchor="middle">{html.escape(title)}</text>'
        label = html.escape(told_)
        return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{grid}{words}{drawn}</svg>'
