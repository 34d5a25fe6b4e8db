"""Charts of a page as SVG: lines, labelled dots, bars; each says in words what it shows."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

from weft.pages.axes import Axis, spread, tick_text

# Seven that colour-blind people tell apart (Okabe and Ito 2008), in a middle brightness for light and dark pages
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1")
DASHES = ("", "6 3", "2 3", "9 3 2 3")  # and apart without colours too

WIDE = (720, 300)  # a chart as wide as the page
HALF = (460, 260)  # one that stands beside another (`beside`)
LEFT, RIGHT, BOTTOM, TOP = 64, 16, 44, 26
LETTER = 12  # the size of letters in a chart
BAR, GAP, NAMES, BAR_WIDTH = 18, 8, 156, 360
LONG_NAME = 20  # letters of a name beside a bar

Point = tuple[float, float]


@dataclass(frozen=True)
class Line:
    """One line of a chart: its name and its points.

    place  which colour and dash it has; None: the place at which it stands
    dots   a dot at every point
    line   whether the points are joined
    """

    name: str
    points: Sequence[Point]
    place: int | None = None
    dots: bool = False
    line: bool = True


@dataclass(frozen=True)
class Dot:
    """One labelled dot of a `dot_chart`."""

    name: str
    across: float
    up: float
    place: int | None = None


@dataclass(frozen=True)
class Bar:
    """One bar: its length from zero, and how the number is written (nothing: it is not known)."""

    name: str
    value: float
    words: str = ""
    place: int | None = None


def colour_of(place: int) -> str:
    """Of what stands at this place."""
    return COLOURS[place % len(COLOURS)]


def dash_of(place: int) -> str:
    """How its line is interrupted; together with the colour different for the first 28."""
    return DASHES[place % len(DASHES)]


def smoothed(points: Sequence[Point], most: int = 400) -> list[Point]:
    """At most so many points: the mean of stretches of equal length, each standing at its end."""
    size = max(1, math.ceil(len(points) / most))
    stretches = [points[start : start + size] for start in range(0, len(points), size)]
    return [(part[-1][0], sum(y for _, y in part) / len(part)) for part in stretches]


def line_chart(
    lines: Sequence[Line],
    *,
    across: str,
    up: str,
    log_across: bool = False,
    log_up: bool = False,
    zero: bool = False,
    size: tuple[int, int] = WIDE,
    named: bool = True,
) -> str:
    """Lines over one pair of axes, with a key where there are several and it is wanted (`named`). `zero` begins the
    axis across at zero; values that are no numbers leave a gap."""
    known = [point for line in lines for point in line.points if all(map(math.isfinite, point))]
    frame = _Frame(
        Axis([*([0.0] if zero and not log_across else []), *(x for x, _ in known)], log=log_across, count=7),
        Axis([y for _, y in known], log=log_up),
        size,
    )
    drawn = "".join(_line(line, _place(line.place, n), frame) for n, line in enumerate(lines))
    ends = [f"{line.name} {line.points[-1][1]:.4g}" for line in lines if line.points]
    told = f"{up} over {across}; at the end: {', '.join(ends)}" if ends else f"{up} over {across}: nothing is known"
    return frame.svg(drawn, across, up, told) + (key(lines) if named and len(lines) > 1 else "")


def dot_chart(dots: Sequence[Dot], *, across: str, up: str, size: tuple[int, int] = WIDE) -> str:
    """A dot with its name for each; names are moved apart."""
    frame = _Frame(Axis([0.0, *(dot.across for dot in dots)], count=7), Axis([dot.up for dot in dots]), size)
    places = [frame.place(dot.across, dot.up) for dot in dots]
    heights = spread([y for _, y in places], LETTER + 4, TOP + LETTER, size[1] - BOTTOM)
    parts = []
    for n, (dot, (x, y), height) in enumerate(zip(dots, places, heights, strict=True)):
        colour = colour_of(_place(dot.place, n))
        left = x > LEFT + 0.6 * (size[0] - LEFT - RIGHT)
        at, anchor = (x - 26, "end") if left else (x + 26, "start")
        parts.append(
            f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x - 22 if left else x + 22:.1f}" y2="{height:.1f}" '
            f'stroke="{colour}" stroke-width="1"/><circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>'
            f'<text x="{at:.1f}" y="{height + 4:.1f}" text-anchor="{anchor}">{html.escape(dot.name)}</text>'
        )
    told = ", ".join(f"{dot.name} {dot.up:.4g} at {dot.across:.4g}" for dot in dots)
    return frame.svg("".join(parts), across, up, f"{up} over {across}: {told}")


def bars(title: str, values: Sequence[Bar]) -> str:
    """One measure of several things, from zero, the first on top."""
    most = max([1e-12, *(bar.value for bar in values if math.isfinite(bar.value))])
    parts = []
    for n, bar in enumerate(values):
        y, long = n * (BAR + GAP), (BAR_WIDTH - NAMES - 70) * min(max(0.0, bar.value) / most, 1.0)
        shown = bar.name if len(bar.name) <= LONG_NAME else bar.name[: LONG_NAME - 1] + "…"
        parts.append(
            f'<text x="{NAMES - 8}" y="{y + 14}" text-anchor="end">{html.escape(shown)}</text>'
            f'<rect x="{NAMES}" y="{y}" width="{long:.1f}" height="{BAR}" fill="{colour_of(_place(bar.place, n))}"/>'
            f'<text x="{NAMES + long + 6:.1f}" y="{y + 14}">{html.escape(bar.words) or "not known"}</text>'
        )
    told = html.escape(f"{title}: " + ", ".join(f"{bar.name} {bar.words or 'not known'}" for bar in values))
    return (
        f'<svg class="bar" viewBox="0 0 {BAR_WIDTH} {len(values) * (BAR + GAP)}" role="img" aria-label="{told}">'
        f"{''.join(parts)}</svg>"
    )


def key(lines: Sequence[Line]) -> str:
    """Which line is whose."""
    shown = "".join(
        f'<li><svg viewBox="0 0 28 12" aria-hidden="true">{_sample(line, _place(line.place, n))}</svg>'
        f"{html.escape(line.name)}</li>"
        for n, line in enumerate(lines)
    )
    return f'<ul class="key">{shown}</ul>\n'


def _place(wanted: int | None, standing: int) -> int:
    return standing if wanted is None else wanted


def _stroke(place: int) -> str:
    dash = f' stroke-dasharray="{dash_of(place)}"' if dash_of(place) else ""
    return f'stroke="{colour_of(place)}" stroke-width="2" fill="none"{dash}'


def _sample(line: Line, place: int) -> str:
    drawn = f'<line x1="0" x2="28" y1="6" y2="6" {_stroke(place)}/>' if line.line else ""
    return drawn + (f'<circle cx="14" cy="6" r="3" fill="{colour_of(place)}"/>' if not line.line else "")


def _line(line: Line, place: int, frame: _Frame) -> str:
    drawn, dots = "", ""
    for stretch in _stretches(line.points):
        places = [frame.place(x, y) for x, y in stretch]
        if line.line:
            joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            drawn += f'<polyline points="{joined}" {_stroke(place)}/>'
        if line.dots or not line.line or len(places) == 1:  # one alone is no line
            dots += "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour_of(place)}"/>' for x, y in places)
    return drawn + dots


def _stretches(points: Sequence[Point]) -> list[list[Point]]:
    """Points that are known, up to the next that is not."""
    found: list[list[Point]] = [[]]
    for x, y in points:
        if math.isfinite(x) and math.isfinite(y):
            found[-1].append((x, y))
        elif found[-1]:
            found.append([])
    return [stretch for stretch in found if stretch]


class _Frame:
    """The area between two axes, with its grid."""

    def __init__(self, across: Axis, up: Axis, size: tuple[int, int]) -> None:
        self.across, self.up, (self.width, self.height) = across, up, size

    def place(self, x: float, y: float) -> Point:
        """Where a value stands in the chart."""
        wide, tall = self.width - LEFT - RIGHT, self.height - BOTTOM - TOP
        return LEFT + wide * self.across.place(x), TOP + tall * (1 - self.up.place(y))

    def svg(self, drawn: str, across: str, up: str, told: str) -> str:
        """The chart with grid and titles, in words too."""
        width, height, grid = self.width, self.height, ""
        for value in self.up.ticks:
            _, y = self.place(self.across.ticks[0], value)
            grid += f'<line x1="{LEFT}" x2="{width - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="var(--grid)"/>'
            grid += f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick_text(value)}</text>'
        for value in self.across.ticks:
            x, _ = self.place(value, self.up.ticks[0])
            grid += f'<text x="{x:.1f}" y="{height - BOTTOM + 16}" text-anchor="middle">{tick_text(value)}</text>'
        below, middle = html.escape(across), (LEFT + width - RIGHT) / 2
        grid += f'<text x="{middle:.0f}" y="{height - 6}" text-anchor="middle">{below}</text>'
        if width >= WIDE[0]:  # a small one stands below its title
            grid += f'<text x="4" y="{LETTER}">{html.escape(up)}</text>'
        label = html.escape(told)
        return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{label}">{grid}{drawn}</svg>'
