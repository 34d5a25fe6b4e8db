"""Tiny comparisons for tests, trained in this process where nothing is said about processes."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from table_setup import sets
from training_setup import text
from weft.comparison import child, session
from weft.comparison.variants import TrialSpec

SIZES = ["model.width=16", "model.depth=1", "model.max_length=16", "model.attention.heads=2", "training.batch=6"]
CHANGES = dict(size.split("=") for size in SIZES)
TOO_FAST = {"training.optimizer.embedding_rate": ["1e+38", "0.01"]}  # the first ends in what is not a number
KINDS = {"model.attention.kind": ["softmax", "hard"]}


def here(order, out, report):
    """`run_in_child` without a child: the same work, and the same three ways to end."""
    code = child.work(order, out, report, time.perf_counter())
    if code == child.STOPPED:
        raise KeyboardInterrupt
    return "" if code == child.FINISHED else child.read_outcome(out).get("reason", "it failed early")


@pytest.fixture
def in_process(monkeypatch):
    monkeypatch.setattr(session, "run_in_child", here)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a book in it, and we are there."""
    (tmp_path / "book.txt").write_text(text(1500))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def asked(vary=None, data=("book.txt",), changes=None, task="generate", sizes=None, **more) -> TrialSpec:
    """What a user would ask for; `changes` come on top of the tiny sizes."""
    options = {"steps": 4, "tokenizer": "characters", "threads": 1} | more.pop("options", {})
    changes = (CHANGES if sizes is None else sizes) | (changes or {})
    return TrialSpec(tuple(data), task, options, changes, vary=KINDS if vary is None else vary, **more)


def run(vary=None, out="c", report=lambda event: None, **more):
    """Plan and train; the result."""
    made = session.Session.new(asked(vary, **more), out, lambda event: None)
    return made.run(report)


def words(*more: str, steps: int = 4) -> list[str]:
    """`weft compare` on the book, at a scale for tests."""
    return ["compare", "book.txt", "--steps", str(steps), "--tokenizer", "characters", "--threads", "1", *sets(*SIZES),
            *more]  # fmt: skip


def config(run: Path) -> dict:
    return json.loads((run / "config.json").read_text())
