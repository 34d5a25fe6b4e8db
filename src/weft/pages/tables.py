"""Tables of a page; whatever stands in them is escaped."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any


def table(heads: Sequence[str], rows: Sequence[Sequence[Any]], *, caption: str = "") -> str:
    """Numbers stand at the right, in as many digits as are worth reading; everything else is text. A table that is
    wider than the page is scrolled, by keyboard too."""
    kinds = ["number" if rows and _is_number(cell) else "" for cell in (rows[0] if rows else heads)]
    top = "".join(f"<th{_class(kind)}>{html.escape(head)}</th>" for head, kind in zip(heads, kinds, strict=True))
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    named = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    label = html.escape(caption or ", ".join(head for head in heads if head), quote=True)
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{label}">'
        f"<table>{named}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def _cell(value: Any) -> str:
    if not _is_number(value):
        return f"<td>{html.escape('' if value is None else str(value))}</td>"
    return f'<td class="number">{f"{value:.4g}" if isinstance(value, float) else f"{value:,}"}</td>'
