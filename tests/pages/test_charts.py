"""Charts: round numbers, nothing on top of something else, told in words, and escaped."""

import itertools
import math
import re

from weft.pages import Bar, Dot, Line, axes, bars, charts, dot_chart, figure, line_chart

NASTY = 'a<i>&"b'
ESCAPED = "a&lt;i&gt;&amp;&quot;b"


def test_axes_have_round_numbers_around_all_values():
    assert axes.ticks([0, 97]) == [0, 25, 50, 75, 100]
    assert axes.ticks([2.31, 2.44]) == [2.3, 2.35, 2.4, 2.45]
    assert axes.ticks([0.0, 0.0]) == [0, 0.25, 0.5, 0.75, 1]
    for values in ([5.0], [0.0, 0.0], [2.0, 2.0001], [1e-9, 2e-9], [-3, 1e6]):
        found = axes.ticks(values)
        assert found[0] <= min(values) and found[-1] >= max(values) and 2 <= len(found) <= 9
    assert axes.ticks([2.0, 2.0001])[-1] - axes.ticks([2.0, 2.0001])[0] >= 0.04  # a hair is drawn as a hair


def test_labels_are_moved_apart():
    for places in ([1, 1, 1], [0, 99, 100, 100], [50, 51, 49, 10], []):
        moved = axes.spread(places, 10, 0, 100)
        ordered = sorted(moved)
        assert all(b - a >= 10 - 1e-9 for a, b in itertools.pairwise(ordered))
        assert all(0 <= place <= 100 for place in moved)
    assert axes.spread([10, 30], 10, 0, 100) == [10, 30]


def test_more_variants_than_colours_are_told_apart():
    drawn = [(charts.colour_of(n), charts.dash_of(n)) for n in range(28)]
    assert len(set(drawn)) == 28
    assert len({charts.dash_of(n) for n in range(4)}) == 4  # and the first few without colours too


def test_powers_are_around_all_values():
    assert axes.powers([1, 1000]) == [1, 10, 100, 1000]
    assert axes.powers([5]) == [1, 10] and axes.powers([10]) == [10, 100]
    for low, high in ((3e-9, 2e12), (1e-40, 1), (0.2, 0.3)):
        found = axes.powers([low, high])
        assert found[0] <= low and found[-1] >= high and 2 <= len(found) <= 8


def test_numbers_at_an_axis():
    told = [axes.tick_text(n) for n in (0, 0.25, 1500, 250_000, 2_500_000, 1e-7, -3)]
    assert told == ["0", "0.25", "1,500", "250,000", "2.5e6", "1e-7", "-3"]


def test_a_place_on_an_axis():
    plain, log = axes.Axis([0, 100]), axes.Axis([1, 100], log=True)
    assert plain.place(25) == 0.25 and log.place(10) == 0.5
    assert log.place(0) == 0 and plain.place(1e9) == 1  # what cannot be shown stands at the end


def test_lines_are_drawn_told_and_named():
    text = line_chart([Line(NASTY, [(0, 1), (10, 3)]), Line("b", [(0, 2), (10, 2.5)])], across=NASTY, up="loss")
    assert text.count("<polyline") == 2 and "<circle" not in text and text.count("<li>") == 2
    assert f'aria-label="loss over {ESCAPED}; at the end: {ESCAPED} 3, b 2.5"' in text and "<i>" not in text
    assert "<li>" not in line_chart([Line("alone", [(0, 1)])], across="x", up="y")


def test_higher_is_higher_and_later_is_to_the_right():
    text = line_chart([Line("a", [(0, 0), (10, 100)])], across="x", up="y")
    (left, low), (right, high) = (map(float, p.split(",")) for p in re.search(r'points="(.*?)"', text)[1].split())
    assert left < right and low > high  # an SVG counts from the top
    assert (left, right) == (charts.LEFT, charts.WIDE[0] - charts.RIGHT)


def test_what_is_no_number_leaves_a_gap():
    points = [(0, 1), (1, 2), (2, math.nan), (3, math.inf), (4, 1), (5, 2)]
    text = line_chart([Line("a", points)], across="x", up="y")
    assert text.count("<polyline") == 2 and "nan" not in text.split("aria-label")[1].split(">", 1)[1]
    assert "nothing is known" in line_chart([Line("a", [])], across="x", up="y")
    line_chart([Line("a", [(1, 0.0), (2, 0.0)])], across="x", up="y", log_across=True, log_up=True)


def test_one_point_is_a_dot():
    assert "<circle" in line_chart([Line("a", [(3, 1)])], across="x", up="y")
    text = line_chart([Line("a", [(3, 1), (4, 1)], line=False)], across="x", up="y")
    assert text.count("<circle") == 2 and "<polyline" not in text


def test_bars_begin_at_zero():
    text = bars(
        "size", [Bar("a", 10, "ten"), Bar(NASTY, 5, "five"), Bar("c", 0), Bar("d", -1, "less"), Bar("e", math.inf, "∞")]
    )
    wide = [float(width) for width in re.findall(r'<rect [^>]*width="([\d.]+)"', text)]
    assert wide[0] == 2 * wide[1] > 0 and wide[2:] == [0, 0, wide[0]]
    assert f"size: a ten, {ESCAPED} five, c not known" in text and "<i>" not in text
    assert "rect" not in bars("nothing", [])


def test_dots_have_names():
    text = dot_chart([Dot(NASTY, 1, 2), Dot("b", 1, 2)], across="s", up="q")
    assert text.count("<circle") == 2 and "<i>" not in text and f">{ESCAPED}</text>" in text


def test_smoothing_keeps_the_mean_and_the_end():
    points = [(n, float(n)) for n in range(1, 1001)]
    found = charts.smoothed(points, 10)
    assert len(found) == 10 and found[0] == (100, 50.5) and found[-1] == (1000, 950.5)
    assert charts.smoothed(points[:5], 10) == points[:5]


def test_a_table_stands_behind_a_chart():
    text = figure(NASTY, "<svg></svg>", ["x"], [[NASTY]])
    assert text.count(ESCAPED) == 4 and "<i>" not in text and "<details>" in text and "<svg>" in text
