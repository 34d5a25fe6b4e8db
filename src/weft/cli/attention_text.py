"""An attention map in letters: each row a token that asks, each column one that answers, the darker the more."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from weft.analysis.view import AttentionView, MapView

SHADES = " .:-=+*#%@"
LEAST = 24  # columns that are always used
ROWS = 64  # lines of a map; of a longer one neighbours share a line


def drawn(view: AttentionView, chosen: tuple[int, int]) -> Iterator[str]:
    """The first head of every map of the view, which `chosen` names: a layer and a head, from 1."""
    width = max(LEAST, shutil.get_terminal_size((80, 24)).columns)
    yield from _wrapped(f"{view.family}: {view.title}", width)
    for name, value in view.facts.items():
        yield from _wrapped(f"{name}: {value}", width)
    for one in view.maps:
        yield ""
        yield from _wrapped(f"{one.part}, layer {chosen[0]}, head {chosen[1]} ({one.name})", width)
        yield from _image(one, width) if one.answering.grid is not None else _rows(one, width)
    yield ""
    yield from _wrapped(f"Shades from nothing to all of a look: {SHADES.replace(' ', '␣')}", width)
    if not all(one.are_shares for one in view.maps):
        yield from _wrapped("Weights without % are no shares: their kind promises nothing of a row.", width)


def _rows(one: MapView, width: int) -> Iterator[str]:
    """A line for each token that asks: its label, its weights as shades, and what it looks at most."""
    weights, asking, answering = one.weights[0], one.asking.labels, one.answering.labels
    most = min(14, width // 5)  # letters of a label
    left, right = min(max(map(len, asking)), most), min(max(map(len, answering)), most) + 6
    room = max(4, width - left - right - 4)
    cells, per_column = _fewer(weights, room)
    per_row = -(-len(asking) // ROWS)
    for first in range(0, len(asking), per_row):
        row, best = cells[first : first + per_row].max(0), int(weights[first].argmax())
        share = f"{_cut(answering[best], right - 6)} {_told(weights[first, best], one)}"
        yield f"{_cut(asking[first], left):>{left}} |{_shaded(row)}| {share}".rstrip()
    shared = [f"{per} {what}" for per, what in ((per_row, "rows"), (per_column, "columns")) if per > 1]
    if shared:
        yield from _wrapped(f"({' and '.join(shared)} share a place: the largest weight is shown)", width)


def _image(one: MapView, width: int) -> Iterator[str]:
    """Where in the image is looked: by the class token if there is one, else by all places on average."""
    grid = one.answering.grid
    assert grid is not None
    outside = len(one.answering.labels) - grid.places
    by_class = one.asking.labels[0] == "[CLS]"
    received = one.weights[0][0] if by_class else one.weights[0].mean(0)
    places = received[outside:].reshape(grid.rows, grid.columns)
    places = places / max(float(places.max()), 1e-12)
    wide = 2 if 2 * grid.columns <= width else 1
    for row in _fewer(places, width)[0]:
        yield _shaded(np.repeat(row, wide)).rstrip()
    whose = f"by {one.asking.labels[0]}" if by_class else "by all places, on average"
    most = _told(received[outside:].max(), one, digits=1)
    yield from _wrapped(f"(where it is looked {whose}; the most is darkest: {most})", width)


def _told(weight: float, one: MapView, digits: int = 0) -> str:
    """As a share in per cent, where it is one."""
    return f"{weight:.{digits}%}" if one.are_shares else f"{weight:.2g}"


def _fewer(cells: np.ndarray, most: int) -> tuple[np.ndarray, int]:
    """At most so many columns, each the largest of its neighbours."""
    per = -(-cells.shape[1] // most)
    return np.maximum.reduceat(cells, np.arange(0, cells.shape[1], per), axis=1), per


def _shaded(row: Sequence[float] | np.ndarray) -> str:
    """Small weights are seen too: the root of a weight is its darkness."""
    steps = np.ceil(np.sqrt(np.clip(row, 0, 1)) * (len(SHADES) - 1) - 1e-9).astype(int)
    return "".join(SHADES[step] if weight > 0.001 else SHADES[0] for step, weight in zip(steps, row, strict=True))


def _cut(label: str, most: int) -> str:
    """The end of a label is what tells channels apart, the beginning what tells words apart."""
    if len(label) <= most:
        return label
    return f"…{label[1 - most :]}" if label[-1].isdigit() else f"{label[: most - 1]}…"


def _wrapped(line: str, width: int) -> list[str]:
    return textwrap.wrap(line, width) or [""]
