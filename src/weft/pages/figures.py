"""A chart with its title, and the table of its numbers behind it."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from weft.pages.tables import table


def figure(title: str, chart: str, heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """`chart` is HTML; everything else is text."""
    numbers = f"<details><summary>The numbers of this chart</summary>{table(heads, rows, caption=title)}</details>"
    return f"<figure><figcaption><b>{html.escape(title)}</b></figcaption>{chart}{numbers}</figure>\n"


def beside(*parts: str) -> str:
    """Next to each other where the page is wide enough for it."""
    return f'<div class="beside">{"".join(parts)}</div>\n'
