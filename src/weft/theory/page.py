"""All findings as one page: it stands alone, asks for nothing, and has a table behind every picture."""

from __future__ import annotations

import html
from collections.abc import Sequence

from weft.theory.claim import HOLDS, WRONG, Finding, Picture, Table, Value
from weft.theory.drawing import svg
from weft.theory.prediction import number

STYLE = """
:root { color-scheme: light dark; --grid: #8884; --right: #00795a; --wrong: #b84a00; }
@media (prefers-color-scheme: dark) { :root { --right: #3fc79a; --wrong: #ff9a56; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
svg { width: 100%; height: auto; } text { fill: currentColor; font-size: 12px; }
table { border-collapse: collapse; width: 100%; } caption { text-align: left; font-weight: 600; }
td, th { padding: .2rem .9rem .2rem 0; text-align: left; vertical-align: top; }
th { font-weight: 600; border-bottom: 1px solid var(--grid); }
td { font-variant-numeric: tabular-nums; overflow-wrap: break-word; }
.wide { overflow-x: auto; } .holds { color: var(--right); } .wrong { color: var(--wrong); font-weight: 600; }
.claim { border-left: 4px solid var(--grid); padding-left: 1rem; margin: 0 0 .6rem; }
section { margin-top: 2.5rem; } h2 { margin-bottom: .2rem; } .place { margin-top: 0; opacity: .8; }
figure { margin: 1rem 0; max-width: 42rem; } summary { cursor: pointer; }
ul.key { list-style: none; padding: 0; margin: 0; display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; }
ul.key svg { width: 28px; height: 12px; margin-right: .4rem; }
a.skip { position: absolute; left: -99rem; } a.skip:focus { position: static; }
:focus-visible { outline: 2px solid currentColor; outline-offset: 2px; }
"""
MARKS = {HOLDS: "holds", WRONG: "wrong", None: ""}


def page(findings: Sequence[Finding]) -> str:
    """The page as text."""
    verdicts = [finding.verdict for finding in findings]
    counted = f"{verdicts.count(HOLDS)} hold, in {verdicts.count(WRONG)} the document is wrong"
    left = verdicts.count(None)
    rest = f", {left} {'was' if left == 1 else 'were'} not run" if left else ""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>What the documents claim, computed</title><style>{STYLE}</style></head><body>
<a class="skip" href="#claims">To the claims</a>
<h1>What the documents claim, computed</h1>
<p>Every claim of five teaching documents about Transformers, checked on the code of this package: {len(findings)}
claims, {counted}{rest}. A verdict is computed: a claim holds if each number that the document predicts agrees with the
one that was measured, within the tolerance that stands beside it.</p>
<main id="claims">
{_overview(findings)}
{"".join(map(_section, findings))}</main>
</body></html>
"""


def _overview(findings: Sequence[Finding]) -> str:
    rows = "".join(
        f'<tr><td><a href="#{html.escape(f.id)}">{html.escape(f.id)}</a></td><td>{html.escape(f.claim.title)}</td>'
        f"<td>{html.escape(', '.join(f.claim.documents))}</td>{_verdict_cell(f)}</tr>"
        for f in findings
    )
    return f"<table><tr><th>id</th><th>claim</th><th>document</th><th>verdict</th></tr>{rows}</table>"


def _verdict_cell(finding: Finding) -> str:
    return f'<td class="{MARKS[finding.verdict]}">{html.escape(finding.verdict or "not run")}</td>'


def _section(finding: Finding) -> str:
    claim, verdict = finding.claim, finding.verdict
    told = f'<p>Verdict: <span class="{MARKS[verdict]}">{html.escape(verdict or "not run")}</span></p>'
    broken = "" if finding.sound else '<p class="wrong">Measured and right differ: a part of the package is broken.</p>'
    found = finding.evidence
    shown = "" if found is None else "".join([*map(_table, found.tables), *map(_figure, found.pictures)])
    place = f"document {', '.join(claim.documents)}, {claim.where}"
    return f"""<section id="{html.escape(finding.id)}"><h2>{html.escape(finding.id)} {html.escape(claim.title)}</h2>
<p class="place">{html.escape(place)}</p>
<blockquote class="claim">{html.escape(claim.says)}</blockquote>
{_values(finding.values)}{told}{broken}
<p>{html.escape(finding.says)}</p>
{shown}</section>
"""


def _values(values: Sequence[Value]) -> str:
    if not values:
        return ""
    rows = [(v.what, v.told(v.document), v.told(v.right), v.right.tolerance, v.told(v.measured)) for v in values]
    heads = ("", "the document predicts", "right is", "tolerance", "measured")
    return _rows("", heads, rows)


def _table(table: Table) -> str:
    return _rows(table.title, table.heads, table.rows)


def _rows(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table that scrolls by itself, also by keyboard, where it is wider than the page."""
    top = "".join(f"<th>{html.escape(head)}</th>" for head in heads)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    caption = f"<caption>{html.escape(title)}</caption>" if title else ""
    name = html.escape(title or "values")
    region = f'<div class="wide" tabindex="0" role="region" aria-label="{name}">'
    return f"{region}<table>{caption}<tr>{top}</tr>{body}</table></div>\n"


def _figure(picture: Picture) -> str:
    """The picture, and its numbers behind it."""
    rows = [(name, number(x), number(y)) for name, line in picture.lines.items() for x, y in line]
    heads = ("line", picture.across, picture.up)
    title = html.escape(picture.title)
    numbers = f"<details><summary>The numbers of this picture</summary>{_rows(picture.title, heads, rows)}</details>"
    return f"<figure><figcaption><b>{title}</b></figcaption>{svg(picture)}{numbers}</figure>\n"
