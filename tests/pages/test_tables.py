"""The shell and its tables: everything from outside is text."""

from weft.pages import Html, page, table

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
