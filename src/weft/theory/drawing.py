"""Pictures of what was found: axes with round numbers, as SVG and in the letters of a terminal."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

from weft.theory.claim import Picture
from weft.theory.prediction import number

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # Okabe and Ito 2008
DASHES = ("", "6 3", "2 3", "9 3 2 3", "12 4", "1 4")  # and apart without colours too
WIDTH, HEIGHT, LEFT, RIGHT, BOTTOM, TOP = 640, 300, 72, 16, 44, 12
LETTERS = "ox+*#@"


class Axis:
    """Round numbers around the values, and where a value stands between the first and the last of them."""

    def __init__(self, values: Sequence[float], *, log: bool) -> None:
        self.log = log
        known = [v for v in values if math.isfinite(v) and (v > 0 or not log)] or [1.0]
        self.ticks = _powers(min(known), max(known)) if log else _round_numbers(min(known), max(known))

    def place(self, value: float) -> float:
        """From 0 to 1; what an axis cannot show stands at its end."""
        first, last = (self._at(tick) for tick in (self.ticks[0], self.ticks[-1]))
        return min(1.0, max(0.0, (self._at(value) - first) / (last - first)))

    def _at(self, value: float) -> float:
        if not self.log:
            return value
        return math.log10(value) if value > 0 else -400.0


def _powers(low: float, high: float) -> list[float]:
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    last = max(last, first + 1)
    step = max(1, math.ceil((last - first) / 6))
    powers = list(range(first, last + 1, step))
    powers += [powers[-1] + step] if powers[-1] < last else []
    return [10.0**power for power in powers]


def _round_numbers(low: float, high: float) -> list[float]:
    wide = (high - low) or abs(high) or 1.0
    raw = wide / 4
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * n for n in (1, 2, 2.5, 5, 10) if power * n >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(n * step, 12) for n in range(first, max(last, first + 1) + 1)]


def axes_of(picture: Picture) -> tuple[Axis, Axis]:
    """Across and up, around all points."""
    points = [point for line in picture.lines.values() for point in line]
    across = Axis([x for x, _ in points], log=picture.log_across)
    return across, Axis([y for _, y in points], log=picture.log_up)


# -- as SVG -----------------------------------------------------------------------------------


def svg(picture: Picture) -> str:
    """The picture with its grid and a key, and in words for those who cannot see it."""
    across, up = axes_of(picture)

    def place(x: float, y: float) -> tuple[float, float]:
        wide, tall = WIDTH - LEFT - RIGHT, HEIGHT - BOTTOM - TOP
        return LEFT + wide * across.place(x), TOP + tall * (1 - up.place(y))

    parts = []
    for tick in up.ticks:
        _, y = place(across.ticks[0], tick)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="var(--grid)"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{_tick(tick)}</text>')
    for tick in across.ticks:
        x, _ = place(tick, up.ticks[0])
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{_tick(tick)}</text>')
    below = html.escape(picture.across)
    parts.append(f'<text x="{(LEFT + WIDTH) / 2:.0f}" y="{HEIGHT - 6}" text-anchor="middle">{below}</text>')
    for number_, line in enumerate(picture.lines.values()):
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in line))
        parts.append(f'<polyline points="{points}" {_stroke(number_)}/>')
    ends = ", ".join(f"{name} ends at {number(line[-1][1])}" for name, line in picture.lines.items() if line)
    told = html.escape(f"{picture.title}: {picture.up} over {picture.across}; {ends}")
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{told}">{"".join(parts)}</svg>{_key(picture)}'


def _stroke(place: int) -> str:
    dash = DASHES[place % len(DASHES)]
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'stroke="{COLOURS[place % len(COLOURS)]}" stroke-width="2" fill="none"{dashed}'


def _key(picture: Picture) -> str:
    shown = "".join(
        f'<li><svg viewBox="0 0 28 12" aria-hidden="true"><line x1="0" x2="28" y1="6" y2="6" {_stroke(place)}/></svg>'
        f"{html.escape(name)}</li>"
        for place, name in enumerate(picture.lines)
    )
    return f'<ul class="key">{shown}</ul>'


def _tick(value: float) -> str:
    return number(int(value) if float(value).is_integer() and abs(value) < 1e6 else value)


# -- in letters -------------------------------------------------------------------------------


def letters(picture: Picture, columns: int, rows: int = 12) -> list[str]:
    """The picture in a terminal: a letter for each line; where two meet, the later one stands."""
    across, up = axes_of(picture)
    names = [_tick(tick) for tick in up.ticks]
    left = max(map(len, names)) + 1
    wide = max(16, min(columns, 76) - left - 2)
    cells = [[" "] * wide for _ in range(rows)]
    for place, line in enumerate(picture.lines.values()):
        for x, y in line:
            row = round((rows - 1) * (1 - up.place(y)))
            cells[row][round((wide - 1) * across.place(x))] = LETTERS[place % len(LETTERS)]
    labels = {round((rows - 1) * (1 - up.place(tick))): name for tick, name in zip(up.ticks, names, strict=True)}
    drawn = [f"{labels.get(n, ''):>{left}} |{''.join(row)}".rstrip() for n, row in enumerate(cells)]
    first, last = _tick(across.ticks[0]), _tick(across.ticks[-1])
    ends = f"{first}{picture.across:^{max(1, wide - len(first) - len(last))}}{last}"
    return [picture.title, *drawn, f"{'':>{left}} +{'-' * wide}", f"{'':>{left}}  {ends}"]
