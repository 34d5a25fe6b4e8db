"""The page of a comparison: it stands alone, with a table behind every chart."""

from __future__ import annotations

import html
from collections.abc import Sequence

from weft.comparison.charts import Curve, MetricBars, curves_of, length_curves, measures_of, quality_over_seconds
from weft.comparison.result import Comparison
from weft.comparison.variants import told
from weft.pages import Line, bars, beside, dot_chart, key, line_chart, table
from weft.pages import page as whole_page

STYLE = """
.bars h3 { font-size: 1rem; margin: .6rem 0 .2rem; }
.wide td:first-child { overflow-wrap: anywhere; min-width: 9rem; }
dt { font-weight: 600; } dd { margin: 0 0 .6rem 1rem; white-space: pre-wrap; overflow-wrap: anywhere; }
"""


def page(result: Comparison) -> str:
    """The page as text, from the rows and the logs of the runs."""
    shown, curves = curves_of(result)
    best = f" The best is <b>{html.escape(result.best)}</b>." if result.best else ""
    title = html.escape(result.title)
    body = f"""<p>{len(result.rows)} variants of one {html.escape(result.task)} run on the same data and split, judged
by {title}.{best}</p>
{result.html_table()}
{_reasons(result)}<h2>What each costs, and how good it is</h2>
<div class="bars">{beside(*map(_bars, measures_of(result)))}</div>
{_curves(curves, shown)}{_by_length(result)}{_over_seconds(result)}{_samples(result)}<h2>What differs</h2>
{_settings(result)}"""
    return whole_page(result.path.name, body, style=STYLE)


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
    return table(["variant", "settings"], [[row["model"], ", ".join(told(row["settings"]))] for row in result.rows])


# -- charts ---------------------------------------------------------------------------------


def _bars(measure: MetricBars) -> str:
    """One measure of all variants."""
    return f"<div><h3>{html.escape(measure.title)}</h3>{bars(measure.title, measure.values)}</div>"


def _curves(curves: Sequence[Curve], what: str) -> str:
    """A measure over steps and over seconds, all variants in one chart each."""
    if not any(len(curve.points) > 1 for curve in curves):
        return ""
    return (
        f"<h2>{what[0].upper()}{what[1:]}, while they learned</h2>\n{key(_lines(curves, 0))}"
        f"{_chart(curves, 0, what, 'steps')}\n{_chart(curves, 1, what, 'seconds of training')}\n"
    )


def _by_length(result: Comparison) -> str:
    """Translations by the length of their sources: a chart if there are several lengths, and the table behind it."""
    what, curves = length_curves(result)
    if not curves:
        return ""
    drawn = ""
    if any(len(curve.points) > 1 for curve in curves):
        drawn = f"{key(_lines(curves, 1))}{_chart(curves, 1, what, 'words of the source, mean of each bucket')}\n"
    heads, *rows = result.by_length()[1]
    return f"<h2>{what} by the length of the source</h2>\n{drawn}{table(heads, rows, right=True)}\n"


def _lines(curves: Sequence[Curve], column: int) -> list[Line]:
    """Over the numbers in this column of their points."""
    return [
        Line(curve.name, [(point[column], point[2]) for point in curve.points], place=curve.place, dots=True)
        for curve in curves
    ]


def _chart(curves: Sequence[Curve], column: int, what: str, across: str) -> str:
    return line_chart(_lines(curves, column), across=across, up=what, zero=True, named=False)


def _over_seconds(result: Comparison) -> str:
    """A dot for each variant."""
    dots = quality_over_seconds(result)
    if len(dots) < 2:
        return ""
    title = result.title
    return f"<h2>{html.escape(title)} over seconds</h2>\n{dot_chart(dots, across='seconds, all in all', up=title)}\n"
