"""How `weft check` shows what it found in images."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from weft.cli.check_table import LISTED, LONGEST, Rows, capital, present, remarks, share

if TYPE_CHECKING:
    from rich.console import Console

    from weft.tasks.classify.image_check import ImageCheck

KINDS = {"single": "one for each image", "several": "any number for an image"}


def show(found: ImageCheck, console: Console) -> None:
    """Sentences, a row for each count with a column for each part, then what is to be noticed."""
    present(introduction(found), list(found.parts), counts(found), console)
    remarks(found, console)


def introduction(found: ImageCheck) -> Iterator[str]:
    """Which files, how the classes were told, and the form that images are brought into."""
    for name, part in found.parts.items():
        yield f"{name.capitalize()}: {part.name}"
    yield f"{capital(found.reason)}."
    classes = len(found.parts["train"].classes)
    yield "Labels: numbers." if found.kind == "number" else f"Labels: {classes} classes, {KINDS[found.kind]}."
    colours = "grey" if found.channels == 1 else "coloured"
    yield f"Looked at as {found.size} × {found.size} pixels, {colours}."
    if found.kind == "single":
        can, some = ("can", "half of them") if found.mirrors else ("cannot", "none")
        yield f"Left and right {can} be exchanged: training mirrors {some}."


def counts(found: ImageCheck) -> Rows:
    """Titles, and a cell for each part."""
    parts = list(found.parts.values())
    rows: Rows = [("images", [f"{part.images:,}" for part in parts])]
    rows.append(("equal to an earlier one", [share(part.duplicates, part.images) for part in parts]))
    for name in list(parts[0].classes)[:LISTED]:
        rows.append((name[:LONGEST], [share(part.classes.get(name, 0), part.images) for part in parts]))
    return rows
