"""Tiny comparisons for tests, trained in this process where nothing is said about processes."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from unittest import mock

import pytest
import torch

from table_setup import sets
from training_setup import text
from weft.cli import train
from weft.cli.main import main
from weft.cli.progress import Reporter
from weft.comparison import outcome, process, session
from weft.comparison.variants import TrialSpec

SIZES = ["model.width=16", "model.depth=1", "model.max_length=16", "model.attention.heads=2", "training.batch=6"]
CHANGES = dict(size.split("=") for size in SIZES)
TOO_FAST = {"training.optimizer.embedding_rate": ["1e+38", "0.01"]}  # the first ends in what is not a number
KINDS = {"model.attention.kind": ["softmax", "hard"]}


class _Lines(io.StringIO):
    """Tells each event that is written to it, when it is written."""

    def __init__(self, listen):
        super().__init__()
        self.listen, self.reason, self.err = listen, "", sys.stderr

    def write(self, told):
        event = json.loads(told)
        self.reason = event.get("reason", "")
        with contextlib.redirect_stderr(self.err):  # of who listens
            self.listen(event)
        return len(told)


def here(words, listen):
    """`run_in_child` without a child: the same command, every step of it, and the same three ways to end."""
    out, before, threads = _Lines(listen), sys.argv, torch.get_num_threads()
    sys.argv = ["weft", *words, "--json"]
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(io.StringIO()) as err,
            mock.patch.object(Reporter, "_event_is_due", return_value=True),
            mock.patch.object(train, "_report"),  # a page of every run takes longer than the run
        ):
            main()
    except SystemExit as end:
        if end.code == process.STOPPED:
            raise KeyboardInterrupt from None
        return "" if not end.code else out.reason or err.getvalue()
    finally:
        sys.argv = before
        torch.set_num_threads(threads)
    return ""


@pytest.fixture
def in_process(monkeypatch):
    monkeypatch.setattr(outcome, "run_in_child", here)


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
