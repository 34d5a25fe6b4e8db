"""A table of numbers in which larger ones are darker: who was taken for whom, who looked at whom."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence


def heat_table(
    names: Sequence[str],
    heads: Sequence[str],
    rows: Sequence[Sequence[float]],
    *,
    caption: str,
    corner: str = "",
    words: Callable[[float], str] = "{:g}".format,
) -> str:
    """A row for each of `names`, a column for each of `heads`; the largest number of a row is its darkest. `words`
    writes a number. Read without colours, it is a table like any other."""
    top = "".join(f'<th scope="col">{html.escape(head)}</th>' for head in heads)
    body = "".join(
        f'<tr><th scope="row">{html.escape(name)}</th>{"".join(_cell(value, row, words) for value in row)}</tr>'
        for name, row in zip(names, rows, strict=True)
    )
    label = html.escape(caption)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{label}"><table class="heat">'
        f"<caption>{label}</caption><thead><tr><th>{html.escape(corner)}</th>{top}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _cell(value: float, row: Sequence[float], words: Callable[[float], str]) -> str:
    share = max(0.0, value) / max(1e-12, *row)
    style = f' style="--heat: {share:.2f}"' if share >= 0.005 else ""
    return f"<td{style}>{html.escape(words(value))}</td>"
