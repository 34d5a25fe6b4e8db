"""A folder to compare in, and trainings in this process where a test says nothing about processes."""

import pytest

from fixtures.comparisons import run_without_child
from fixtures.texts import make_text
from weft.comparison import outcome


@pytest.fixture
def in_process(monkeypatch):
    """Variants are trained in this process."""
    monkeypatch.setattr(outcome, "run_in_child", run_without_child)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a book in it, which is the current one."""
    (tmp_path / "book.txt").write_text(make_text(1500))
    monkeypatch.chdir(tmp_path)
    return tmp_path
