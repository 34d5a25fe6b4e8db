"""Charts of attention patterns: the right cells in the right colours, and nothing over anything else."""

import itertools
import re
import sys

import matplotlib
import numpy as np
import pytest

from weft.analysis.patterns import pattern_of, patterns_of, small
from weft.blocks.attention import AttentionConfig
from weft.errors import ConfigError, UnsupportedError
from weft.report import patterns as report
from weft.report.patterns import figure_of, in_order, name_of, shades, title_of, write_patterns


def drawn(*kinds, length=10):
    return [p for kind in kinds for p in patterns_of(small(kind), length)]


# -- words ------------------------------------------------------------------------------------


def test_names_are_the_kind_and_its_fields():
    assert name_of(small("softmax")) == "softmax"
    assert name_of(small("dilated")) == "dilated (window=3, dilation=3)"
    assert name_of(AttentionConfig.from_config("local")) == "local (window=256)"  # though it is the default
    assert name_of(small("local", {"beta": 0.5})) == "local (window=4, beta=0.5)"
    assert name_of(small("union")) == "union of local (window=4) and global (tokens=2)"
    assert name_of(small("global", {"places": "3,5"})) == "global (places=3+5)"


def test_titles_tell_the_layers_where_they_differ():
    assert [title_of(p) for p in drawn("local", "window", "softmax,local")] == [
        "local (window=4)",
        "window (window=6), layers 1, 3, …",
        "window (window=6, shift=3), layers 2, 4, …",
        "alternating of softmax and local (window=4), layers 1, 3, …: softmax",
        "alternating of softmax and local (window=4), layers 2, 4, …: local (window=4)",
    ]


def test_kinds_of_one_base_stand_together():
    shown = in_order()
    assert shown[0] == "softmax" and sorted(shown) == sorted(AttentionConfig.registry)
    bases = [AttentionConfig.registry[kind].__bases__[0] for kind in shown]
    assert len([1 for one, other in itertools.pairwise(bases) if one is not other]) == len(set(bases)) - 1


def test_a_kind_from_elsewhere_says_itself(tmp_path):
    class OtherConfig(AttentionConfig, kind="other"):
        """Sees nothing at all. But politely."""

        description = "Sees nothing at all, but politely"

    try:
        assert in_order()[-1] == "other" or in_order().index("other") > in_order().index("channel")
        write_patterns(patterns_of(OtherConfig(), 4), tmp_path / "p.html")
        page = (tmp_path / "p.html").read_text(encoding="utf-8")
        assert "Sees nothing at all, but politely" in page
        assert "it does not say" in page and "cannot be built on its own" in page
    finally:
        del AttentionConfig.registry["other"]


@pytest.mark.parametrize(
    ("kind", "two_way", "causal"),
    [
        ("softmax", lambda n: n * n, lambda n: n * n),
        ("local", lambda n: n * (2 * 4 - 1), lambda n: n * 4),
        ("dilated", lambda n: n * (2 * 3 - 1), lambda n: n * 3),
        ("strided", lambda n: n * (2 * 5 + n / 5), lambda n: n * (5 + n / 5)),
        ("window", lambda n: n * 6, lambda n: n * 6),
        ("global", lambda n: n * (2 * 2 + 1), lambda n: n * (2 + 1)),
    ],
)
def test_costs_are_what_is_counted(kind, two_way, causal):
    """Never more, and not much less: at the ends of the row there are fewer neighbours."""
    for length in (24, 60):
        assert 0.75 * two_way(length) < pattern_of(small(kind), length).sum() <= two_way(length)
        assert 0.45 * causal(length) < pattern_of(small(kind), length, causal=True).sum() <= causal(length)


# -- cells ------------------------------------------------------------------------------------


def test_shades():
    seen = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 0]], dtype=bool)
    assert shades(seen, causal=False).tolist() == [[3, 2, 1], [1, 3, 2], [2, 1, 1]]
    assert shades(np.tril(seen), causal=True).tolist() == [[3, 0, 0], [1, 3, 0], [2, 1, 1]]
    assert shades(seen, causal=True)[1, 2] == report.OTHER  # a leak is shown as one


def test_the_chart_has_the_cells():
    found = drawn("local", "channel")
    axes = figure_of(found).axes
    assert [axis.get_title() for axis in axes] == ["encoder", "decoder"] * 2
    assert (axes[0].images[0].get_array() == shades(found[0].encoder, causal=False)).all()
    assert (axes[1].images[0].get_array() == shades(found[0].decoder, causal=True)).all()
    colours = axes[1].images[0].to_rgba(axes[1].images[0].get_array())
    for row, column, shade in ((0, 1, report.FUTURE), (9, 0, report.UNSEEN), (5, 4, report.OTHER), (5, 5, report.OWN)):
        assert matplotlib.colors.to_hex(colours[row, column]) == report.COLOURS[shade]
    assert not axes[3].images and "every channel" in axes[3].texts[0].get_text()


def boxes(figure):
    """Where everything stands that is written or drawn, with a name for each."""
    renderer = figure.canvas.get_renderer()
    parts = [(text.get_text(), text) for text in figure.texts if text.get_text()]
    parts += [(f"title of {n}", axis.title) for n, axis in enumerate(figure.axes)]
    parts += [(f"matrix {n}", axis.patch) for n, axis in enumerate(figure.axes)]
    return [(name, part.get_window_extent(renderer)) for name, part in [*parts, ("legend", figure.legends[0])]]


@pytest.mark.parametrize(
    "kinds", [["softmax", "hard", "window", "channel"], ["local"], ["local,dilated,strided,window,global,hierarchy"]]
)
def test_nothing_stands_over_anything_else(kinds):
    figure = figure_of(drawn(*kinds))
    found = boxes(figure)
    width, height = figure.bbox.size
    for name, box in found:
        assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height, f"{name!r} is cut off"
    for (one, a), (other, b) in itertools.combinations(found, 2):
        assert not a.overlaps(b), f"{one!r} and {other!r}"


# -- files ------------------------------------------------------------------------------------


def test_files(tmp_path):
    found = drawn("local", "channel")
    for suffix in (".png", ".svg", ".html"):
        write_patterns(found, tmp_path / f"p{suffix}")
    png = (tmp_path / "p.png").read_bytes()
    assert png[:8] == b"\x89PNG\r\n\x1a\n" and 5_000 < len(png) < 100_000
    svg, page = ((tmp_path / name).read_text(encoding="utf-8") for name in ("p.svg", "p.html"))
    assert "local (window=4)" in svg and "every channel" in svg
    cells = re.findall(r"<td>(.*?)</td>", page)
    assert cells[:1] == ["local (window=4)"] and "58 of 100 pairs" in cells and "34 of 100 pairs" in cells
    assert "<svg" in page and "<script" not in page and "<?xml" not in page
    assert not re.search(r"(?:src|href)=\"http|url\(http|@import", page)
    assert len(list(tmp_path.iterdir())) == 3


def test_the_same_chart_twice(tmp_path):
    for name in ("a.svg", "b.svg", "a.png", "b.png"):
        write_patterns(drawn("local"), tmp_path / name)
    for suffix in ("svg", "png"):
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


def test_other_files_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"\.png, \.svg, \.html"):
        write_patterns(drawn("local"), tmp_path / "p.gif")


def test_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UnsupportedError, match=r"weft\[plots\]"):
        write_patterns(drawn("local"), tmp_path / "p.png")
    assert not list(tmp_path.iterdir())
