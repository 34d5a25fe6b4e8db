"""Tables of a page; whatever stands in them is escaped."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any


class Html(str):
    """What is HTML already, such as a link or a chart in a cell; everything else is text and escaped."""

    __slots__ = ()


def table(
    heads: Sequence[str], rows: Sequence[Sequence[Any]], *, caption: str = "", right: bool = False, best: int = -1
) -> str:
    """Numbers stand at the right, in as many digits as are worth reading; everything else is text. A table that is
    wider than the page is scrolled, by keyboard too.

    right  all cells but the first stand at the right: numbers that somebody has written out already
    best   the row that stands out
    """
    kinds = [_kind(cell, right and n > 0) for n, cell in enumerate(rows[0] if rows else heads)]
    top = "".join(f"<th{_class(kind)}>{html.escape(head)}</th>" for head, kind in zip(heads, kinds, strict=True))
    body = "".join(
        f"<tr{_class('best' if place == best else '')}>"
        + "".join(_cell(cell, right and n > 0) for n, cell in enumerate(row))
        + "</tr>"
        for place, row in enumerate(rows)
    )
    named = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    label = html.escape(caption or ", ".join(head for head in heads if head), quote=True)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{label}">'
        f"<table>{named}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _kind(value: Any, right: bool) -> str:
    return "number" if right or _is_number(value) else ""


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def _cell(value: Any, right: bool) -> str:
    return f"<td{_class(_kind(value, right))}>{_text(value)}</td>"


def _text(value: Any) -> str:
    if isinstance(value, Html):
        return str(value)
    if _is_number(value):
        return f"{value:.4g}" if isinstance(value, float) else f"{value:,}"
    return html.escape("" if value is None else str(value))
