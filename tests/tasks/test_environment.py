"""What is taken from the machine when nobody says otherwise."""

import os

import pytest

from weft.tasks import environment


@pytest.mark.parametrize(("word", "expected"), [("1", 1), ("3", 3), ("", 2), ("0", 2), ("many", 2)])
def test_threads_are_those_that_the_environment_allows(monkeypatch, word, expected):
    monkeypatch.setenv("OMP_NUM_THREADS", word)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 5}, raising=False)
    assert environment.usual_threads() == expected


def test_without_a_word_they_are_the_processors(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert environment.usual_threads() == 7
