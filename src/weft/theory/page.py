"""All findings as one page: it stands alone, asks for nothing, and has a table behind every image."""

from __future__ import annotations

import html
from collections.abc import Sequence

from weft.pages import Html, figure, table
from weft.pages import page as whole_page
from weft.theory.claim import HOLDS, WRONG, Chart, EvidenceTable, Finding, Value
from weft.theory.drawing import svg
from weft.theory.prediction import number

STYLE = """
.holds { color: var(--good); } .wrong { color: var(--warn); font-weight: 600; } section table { width: 100%; }
.claim { border-left: 4px solid var(--grid); padding-left: 1rem; margin: 0 0 .6rem; }
section { margin-top: 2.5rem; } h2 { margin-bottom: .2rem; } .place { margin-top: 0; color: var(--soft); }
figure { max-width: 42rem; } td { font-variant-numeric: tabular-nums; }
"""
MARKS = {HOLDS: "holds", WRONG: "wrong", None: ""}


def page(findings: Sequence[Finding]) -> str:
    """The page as text."""
    verdicts = [finding.verdict for finding in findings]
    counted = f"{verdicts.count(HOLDS)} hold, in {verdicts.count(WRONG)} the document is wrong"
    left = verdicts.count(None)
    rest = f", {left} {'was' if left == 1 else 'were'} not run" if left else ""
    body = f"""<p>Every claim of five teaching documents about Transformers, checked on the code of this package:
{len(findings)} claims, {counted}{rest}. A verdict is computed: a claim holds if each number that the document predicts
agrees with the one that was measured, within the tolerance that stands beside it.</p>
{_overview(findings)}
{"".join(map(_section, findings))}"""
    return whole_page("What the documents claim, computed", body, style=STYLE)


def _overview(findings: Sequence[Finding]) -> str:
    rows = [
        (Html(f'<a href="#{html.escape(f.id)}">{html.escape(f.id)}</a>'), f.claim.title, _documents(f), _verdict(f))
        for f in findings
    ]
    return table(("id", "claim", "document", "verdict"), rows)


def _documents(finding: Finding) -> str:
    return ", ".join(finding.claim.documents)


def _verdict(finding: Finding) -> Html:
    return Html(f'<span class="{MARKS[finding.verdict]}">{html.escape(finding.verdict or "not run")}</span>')


def _section(finding: Finding) -> str:
    claim, told = finding.claim, f"<p>Verdict: {_verdict(finding)}</p>"
    broken = "" if finding.sound else '<p class="wrong">Measured and right differ: a part of the package is broken.</p>'
    found = finding.evidence
    shown = "" if found is None else "".join([*map(_table, found.tables), *map(_figure, found.charts)])
    place = f"document {_documents(finding)}, {claim.where}"
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
    return table(heads, rows, caption="Predicted and measured")


def _table(shown: EvidenceTable) -> str:
    return table(shown.heads, shown.rows, caption=shown.title)


def _figure(image: Chart) -> str:
    """The image, and its numbers behind it."""
    rows = [(name, number(x), number(y)) for name, line in image.lines.items() for x, y in line]
    return figure(image.title, svg(image), ("line", image.across, image.up), rows)
