"""How `weft check` shows what it found in tables of labelled texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from weft.cli.runs import NARROW, shown

if TYPE_CHECKING:
    from rich.console import Console

    from weft.tasks.classify.check import LabelledCheck, TableStatistics
    from weft.tasks.classify.image_check import ImageCheck
    from weft.tasks.data_check import Findings
    from weft.tasks.translate.check import PairCheck

LISTED = 12  # classes that have a row of their own
LONGEST = 30  # characters of a label that are shown
Rows = list[tuple[str, list[str]]]


def show(found: LabelledCheck, console: Console) -> None:
    """Sentences, a row for each count with a column for each part, then what is to be noticed."""
    present(introduction(found), list(found.parts), counts(found), console)
    remarks(found, console)


def present(sentences: Iterable[str], names: list[str], rows: Rows, console: Console) -> None:
    """Sentences, then the counts; parts under each other where there is no room beside each other."""
    for line in sentences:
        _say(line, console)
    console.print()
    if console.width < NARROW:
        for place, name in enumerate(names):
            console.print(f"{name}:")
            for title, cells in rows:
                if cells[place]:
                    console.print(f"  {title}: {cells[place]}")
    else:
        _print_table(names, rows, console)
    console.print()


def remarks(found: LabelledCheck | PairCheck | ImageCheck | Findings, console: Console) -> None:
    """What is to be noticed, or that there is nothing."""
    for kind, sentences in (("Note", found.notes), ("Warning", found.warnings)):
        for sentence in sentences:
            _say(f"{kind}: {sentence}{'' if sentence.endswith('?') else '.'}", console)
    if not found.warnings and not found.problems:
        console.print("Nothing speaks against training on it.")


def _say(sentence: str, console: Console) -> None:
    """Cut at spaces, and without those at the ends of lines."""
    from rich.text import Text

    for line in Text(shown(sentence)).wrap(console, console.width):
        line.rstrip()
        console.print(line)


def _print_table(names: list[str], rows: Rows, console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    table.add_column("", overflow="fold")
    for name in names:
        table.add_column(name, justify="right", overflow="fold")
    for title, cells in rows:
        table.add_row(*map(Text, (title, *cells)))
    console.print(table)


def introduction(found: LabelledCheck) -> Iterator[str]:
    """Which files and columns, what the labels are, and how tokens were made."""
    for name, part in found.parts.items():
        yield f"{name.capitalize()}: {part.name}"
    yield f"{capital(found.columns.reason)}."
    if found.unused:
        more = f" and {len(found.unused) - LISTED} more" if len(found.unused) > LISTED else ""
        yield f"Not used: {', '.join(map(repr, found.unused[:LISTED]))}{more}."
    yield _labels(found)
    which = "all training texts" if found.one_in == 1 else f"one training text in {found.one_in}"
    yield (
        f"Tokens: {found.tokenizer}, learned from {which}, {found.vocab_size:,} in the vocabulary; "
        "[CLS] and [SEP] are counted."
    )


def capital(text: str) -> str:
    """With a large first letter."""
    return text[:1].upper() + text[1:]


def _labels(found: LabelledCheck) -> str:
    labels = found.labels
    if found.columns.label is None:
        return f"Labels: none ({found.no_label}); only the texts are checked."
    if labels is None:
        return f"Labels: those in {found.columns.label!r} cannot be learned."
    if labels.kind == "number":
        return "Labels: numbers."
    if labels.kind == "several":
        how = "as JSON lists" if labels.separator == "[" else f"separated by {labels.separator!r}"
        return f"Labels: {len(labels.classes)} classes, several for a text, {how}."
    return f"Labels: {len(labels.classes)} classes, one for each text."


# -- counts -----------------------------------------------------------------------------------


def counts(found: LabelledCheck) -> Rows:
    """Titles, and a cell for each part."""
    parts = list(found.parts.values())
    rows: Rows = [("rows", [f"{part.rows:,}" for part in parts])]
    for title, left_out in (
        ("broken, left out", [part.broken for part in parts]),
        ("without a text, left out", [part.without_text for part in parts]),
        ("without a label, left out", [part.without_label for part in parts]),
    ):
        if any(left_out):
            rows.append((title, [share(n, part.rows) for n, part in zip(left_out, parts, strict=True)]))
    if len(rows) > 1:
        rows.append(("examples", [f"{part.content.examples:,}" for part in parts]))
    rows += [*_balance(parts), *_numbers(parts)]
    rows += [
        ("words, median", [f"{part.content.words['half']:,}" for part in parts]),
        ("words, longest", [f"{part.content.words['longest']:,}" for part in parts]),
        ("tokens, median", [f"{part.tokens['half']:,}" for part in parts]),
        ("tokens, 95% have at most", [f"{part.tokens['most']:,}" for part in parts]),
        ("tokens, longest", [f"{part.tokens['longest']:,}" for part in parts]),
    ]
    for length in parts[0].cut:
        rows.append((f"cut at {length} tokens", [_cut(part, length) for part in parts]))
    rows.append(("duplicates", [share(part.content.duplicates, part.content.examples) for part in parts]))
    if parts[0].labelled:
        rows.append(("contradicting labels", [f"{part.content.contradictions:,}" for part in parts]))
    for other in ("train", "validation"):
        cells = [
            share(part.leakage[other].examples, part.content.examples) if other in part.leakage else ""
            for part in parts
        ]
        if any(cells):
            rows.append((f"also in {other}", cells))
    return rows


def _balance(parts: list[TableStatistics]) -> Rows:
    """The commonest classes, quoted so that a terminal obeys nothing in them, and the rest together."""
    total: dict[str, int] = {}
    for part in parts:
        for label, count in part.content.balance.items():
            total[label] = total.get(label, 0) + count
    listed = sorted(total, key=lambda label: (-total[label], label))
    if len(listed) > LISTED + 1:
        listed = listed[:LISTED]
    rows: Rows = []
    for label in listed:
        title = repr(label if len(label) <= LONGEST else label[: LONGEST - 1] + "…")
        cells = [share(part.content.balance.get(label, 0), part.content.examples) for part in parts]
        rows.append((title, [cell if part.labelled else "" for cell, part in zip(cells, parts, strict=True)]))
    if len(listed) < len(total):
        rest = [sum(n for label, n in part.content.balance.items() if label not in listed) for part in parts]
        rows.append((f"{len(total) - len(listed)} other classes", [f"{n:,}" for n in rest]))
    return rows


def _numbers(parts: list[TableStatistics]) -> Rows:
    names = {"lowest": "lowest", "quarter": "25% have at most", "half": "median"}
    names |= {"three_quarters": "75% have at most", "highest": "highest"}
    if not any(part.numbers for part in parts):
        return []
    return [
        (f"label, {title}", [f"{part.numbers[name]:g}" if part.numbers else "" for part in parts])
        for name, title in names.items()
    ]


def _cut(part: TableStatistics, length: int) -> str:
    """Counted, or for very many texts estimated."""
    if part.counted == part.content.examples:
        return share(part.cut[length], part.counted)
    return f"about {part.cut[length] / part.counted:.1%}"


def share(number: int, of: int) -> str:
    """A count, and how much of the whole it is."""
    return f"{number:,} ({number / of:.1%})" if number and of else f"{number:,}"
