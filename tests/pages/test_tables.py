"""The shell and its tables: everything from outside is text."""

import base64
import io
import re

import numpy as np
import pytest

from weft.pages import Html, heat_table, page, table
from weft.pages.png import png_pixels, png_uri

NASTY = '<script>alert("x")</script>'


def test_cells_are_text_unless_somebody_says_otherwise():
    text = table([NASTY, "n"], [[NASTY, 1.23456], [Html("<b>bold</b>"), 12345]], caption=NASTY)
    assert "<script" not in text and text.count("&lt;script&gt;") == 4 and "<b>bold</b>" in text
    assert '<td class="number">1.235</td>' in text and '<td class="number">12,345</td>' in text


def test_the_best_row_stands_out():
    text = table(["a", "b"], [["x", "1"], ["y", "2"]], right=True, best=1)
    assert '<tr class="best"><td>y</td><td class="number">2</td></tr>' in text and text.count("best") == 1
    assert "best" not in table(["a"], [["x"]])


def test_nothing_is_a_table_too():
    assert "<tbody></tbody>" in table(["a"], []) and table(["a"], [[None]]).count("<td></td>") == 1
    assert "True" in table(["a"], [[True]])


def test_a_page_escapes_its_title():
    text = page(NASTY, "<p>body</p>")
    assert "<script" not in text and "<p>body</p>" in text and text.startswith("<!doctype html>")


def test_the_largest_of_a_row_is_the_darkest():
    text = heat_table([NASTY, "b"], ["x", NASTY], [[1, 4], [0, 0]], caption=NASTY)
    assert re.findall(r"<td(.*?)>(.)</td>", text) == [
        (' style="--heat: 0.25"', "1"), (' style="--heat: 1.00"', "4"), ("", "0"), ("", "0")
    ]  # fmt: skip
    assert "<script" not in text and text.count("&lt;script&gt;") == 4


def test_a_chart_comes_back_as_it_was():
    rng = np.random.default_rng(0)
    for height, width, channels in ((3, 5, 1), (4, 2, 3), (1, 1, 3)):
        pixels = rng.integers(0, 256, (height, width, channels), dtype=np.uint8)
        uri = png_uri(pixels.tobytes(), width, height, channels)
        assert png_pixels(uri) == (pixels.tobytes(), width, height, channels)
        image = pytest.importorskip("PIL.Image").open(io.BytesIO(base64.b64decode(uri.partition(",")[2])))
        assert np.array_equal(np.asarray(image).reshape(pixels.shape), pixels)  # others read it too
