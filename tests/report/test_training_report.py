"""The page of a run: complete, escaped, and without a word to the outside."""

import re
from html.parser import HTMLParser

from training_setup import here, text, train_words
from weft.report import training_report


def test_a_run_leaves_a_page_that_stands_alone(tmp_path):
    (tmp_path / "a&b<i>.txt").write_text(text(1500))
    here(*train_words("a&b<i>.txt", "x&y<b>", 12, "--set", "training.evaluate_every=4"), cwd=tmp_path)
    page = (tmp_path / "x&y<b>" / "report.html").read_text()
    assert page == training_report(tmp_path / "x&y<b>")
    assert "<title>x&amp;y&lt;b&gt;</title>" in page
    assert "<i>" not in page
    assert not re.search(r"https?://|<script|<link|url\(", page)
    assert page.count("<circle") == 3
    assert "12 steps" in page
    assert "a&amp;b&lt;i&gt;.txt" in page
    parser = HTMLParser()
    parser.feed(page)
