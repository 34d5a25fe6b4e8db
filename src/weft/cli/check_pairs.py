"""How `weft check` shows what it found in pairs of texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from weft.cli.check_table import Rows, capital, present, remarks, share

if TYPE_CHECKING:
    from rich.console import Console

    from weft.tasks.translate.check import PairCheck, PairPart

SHOWN = {"half": "median", "most": "95% have at most", "longest": "longest"}


def show(found: PairCheck, console: Console) -> None:
    """Sentences, a row for each count with a column for each part, then what is to be noticed."""
    present(introduction(found), list(found.parts), counts(found), console)
    remarks(found, console)


def introduction(found: PairCheck) -> Iterator[str]:
    """Which files and columns, and how tokens were made."""
    for name, part in found.parts.items():
        yield f"{name.capitalize()}: {part.name}"
    yield f"{capital(found.reason)}."
    which = "all training pairs" if found.one_in == 1 else f"one training pair in {found.one_in}"
    yield (
        f"Tokens: {found.tokenizer}, learned from both sides of {which}, {found.vocab_size:,} in the vocabulary; "
        "the end of a text is counted."
    )


def counts(found: PairCheck) -> Rows:
    """Titles, and a cell for each part."""
    parts = list(found.parts.values())
    rows: Rows = [("rows" if found.source else "lines", [f"{part.rows:,}" for part in parts])]
    for title, left_out in (
        ("broken, left out", [part.broken for part in parts]),
        ("a side empty, left out", [part.without_text for part in parts]),
    ):
        if any(left_out):
            rows.append((title, [share(n, part.rows) for n, part in zip(left_out, parts, strict=True)]))
    rows.append(("pairs", [f"{part.facts.pairs:,}" for part in parts]))
    for unit in ("characters", "tokens"):
        for side in ("source", "target"):
            for quantile, title in SHOWN.items():
                cells = [f"{getattr(part, unit)[side][quantile]:,}" for part in parts]
                rows.append((f"{side} {unit}, {title}", cells))
    rows.append(("target/source characters", [f"{part.ratio:.2f}" for part in parts]))
    for length in parts[0].cut:
        rows.append((f"cut at {length} tokens", [_cut(part, length) for part in parts]))
    for title, name in (
        ("duplicates", "duplicates"),
        ("sources with several targets", "several_targets"),
        ("target is the source", "copied"),
        ("one side 9 times as long", "uneven"),
    ):
        rows.append((title, [share(getattr(part.facts, name), part.facts.pairs) for part in parts]))
    return [*rows, *_leakage(parts)]


def _leakage(parts: list[PairPart]) -> Rows:
    rows: Rows = []
    for other in ("train", "validation"):
        for what in ("sources", "pairs"):
            cells = [
                share(getattr(part.leakage[other], what), part.facts.pairs) if other in part.leakage else ""
                for part in parts
            ]
            if any(cells):
                rows.append((f"{what} also in {other}", cells))
    return rows


def _cut(part: PairPart, length: int) -> str:
    """Counted, or for very many pairs estimated."""
    if part.counted == part.facts.pairs:
        return share(part.cut[length], part.counted)
    return f"about {part.cut[length] / part.counted:.1%}"
