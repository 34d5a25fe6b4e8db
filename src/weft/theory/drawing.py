"""Charts of what was found, for a page and in the letters of a terminal."""

from __future__ import annotations

from weft.pages.axes import Axis, tick_text
from weft.pages.charts import Line, line_chart
from weft.theory.claim import Chart

LETTERS = "ox+*#@"


def axes_of(chart: Chart) -> tuple[Axis, Axis]:
    """Across and up, around all points."""
    points = [point for line in chart.lines.values() for point in line]
    across = Axis([x for x, _ in points], log=chart.log_across)
    return across, Axis([y for _, y in points], log=chart.log_up)


def svg(chart: Chart) -> str:
    """The chart with its grid and a key, and in words for those who cannot see it."""
    lines = [Line(name, points) for name, points in chart.lines.items()]
    return line_chart(lines, across=chart.across, up=chart.up, log_across=chart.log_across, log_up=chart.log_up)


def letters(chart: Chart, columns: int, rows: int = 12) -> list[str]:
    """The chart in a terminal: a letter for each line; where two meet, the later one stands."""
    across, up = axes_of(chart)
    names = [tick_text(tick) for tick in up.ticks]
    left = max(map(len, names)) + 1
    wide = max(16, min(columns, 76) - left - 2)
    cells = [[" "] * wide for _ in range(rows)]
    for place, line in enumerate(chart.lines.values()):
        for x, y in line:
            row = round((rows - 1) * (1 - up.place(y)))
            cells[row][round((wide - 1) * across.place(x))] = LETTERS[place % len(LETTERS)]
    labels = {round((rows - 1) * (1 - up.place(tick))): name for tick, name in zip(up.ticks, names, strict=True)}
    drawn = [f"{labels.get(n, ''):>{left}} |{''.join(row)}".rstrip() for n, row in enumerate(cells)]
    first, last = tick_text(across.ticks[0]), tick_text(across.ticks[-1])
    ends = f"{first}{chart.across:^{max(1, wide - len(first) - len(last))}}{last}"
    return [chart.title, *drawn, f"{'':>{left}} +{'-' * wide}", f"{'':>{left}}  {ends}"]
