"""Pictures of what was found, for a page and in the letters of a terminal."""

from __future__ import annotations

from weft.pages.axes import Axis, tick_text
from weft.pages.charts import Line, line_chart
from weft.theory.claim import Picture

LETTERS = "ox+*#@"


def axes_of(picture: Picture) -> tuple[Axis, Axis]:
    """Across and up, around all points."""
    points = [point for line in picture.lines.values() for point in line]
    across = Axis([x for x, _ in points], log=picture.log_across)
    return across, Axis([y for _, y in points], log=picture.log_up)


def svg(picture: Picture) -> str:
    """The picture with its grid and a key, and in words for those who cannot see it."""
    lines = [Line(name, points) for name, points in picture.lines.items()]
    return line_chart(lines, across=picture.across, up=picture.up, log_across=picture.log_across, log_up=picture.log_up)


def letters(picture: Picture, columns: int, rows: int = 12) -> list[str]:
    """The picture in a terminal: a letter for each line; where two meet, the later one stands."""
    across, up = axes_of(picture)
    names = [tick_text(tick) for tick in up.ticks]
    left = max(map(len, names)) + 1
    wide = max(16, min(columns, 76) - left - 2)
    cells = [[" "] * wide for _ in range(rows)]
    for place, line in enumerate(picture.lines.values()):
        for x, y in line:
            row = round((rows - 1) * (1 - up.place(y)))
            cells[row][round((wide - 1) * across.place(x))] = LETTERS[place % len(LETTERS)]
    labels = {round((rows - 1) * (1 - up.place(tick))): name for tick, name in zip(up.ticks, names, strict=True)}
    drawn = [f"{labels.get(n, ''):>{left}} |{''.join(row)}".rstrip() for n, row in enumerate(cells)]
    first, last = tick_text(across.ticks[0]), tick_text(across.ticks[-1])
    ends = f"{first}{picture.across:^{max(1, wide - len(first) - len(last))}}{last}"
    return [picture.title, *drawn, f"{'':>{left}} +{'-' * wide}", f"{'':>{left}}  {ends}"]
