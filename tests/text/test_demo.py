"""The corpus that every Python brings along."""

import re

import pytest

from weft.errors import DataError
from weft.text import Corpus, demo
from weft.text.demo import demo_text


def test_two_megabytes_of_english_the_same_each_time():
    text = demo_text()
    assert 1_500_000 < len(text) <= demo.LENGTH
    assert text == demo_text()
    words = re.findall(r"[a-z]+", text.lower())
    assert words.count("the") > 0.03 * len(words)
    assert "\0" not in text and "\r" not in text
    assert Corpus.of_text(text).characters == len(text)


def test_it_is_cut_between_paragraphs(monkeypatch):
    text = demo_text()
    monkeypatch.setattr(demo, "LENGTH", 300_000)
    short = demo_text()
    assert 250_000 < len(short) <= 300_000
    assert text.startswith(short.rstrip("\n") + "\n\n")


def test_a_python_without_texts(monkeypatch, tmp_path):
    monkeypatch.setattr(demo.topics, "topics", {})
    monkeypatch.setattr(demo.sysconfig, "get_path", lambda name: str(tmp_path))
    (tmp_path / "broken.py").write_text('"""' + "word " * 100 + '"""\nif if if\n')
    with pytest.raises(DataError, match="without its documentation"):
        demo_text()
