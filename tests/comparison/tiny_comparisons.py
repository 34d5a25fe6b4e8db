"""Tiny comparisons from Python: what a user would ask for, and its result."""

from __future__ import annotations

from fixtures.comparisons import TINY
from weft.comparison.session import Session
from weft.comparison.variants import TrialSpec

TINY_SETTINGS = dict(setting.split("=") for setting in TINY)
KINDS = {"model.attention.kind": ["softmax", "hard"]}


def make_trial_spec(vary=None, data=("book.txt",), changes=None, task="generate", sizes=None, **more) -> TrialSpec:
    """What a user would ask for; `changes` come on top of the tiny sizes."""
    options = {"steps": 4, "tokenizer": "characters", "threads": 1} | more.pop("options", {})
    changes = (TINY_SETTINGS if sizes is None else sizes) | (changes or {})
    return TrialSpec(tuple(data), task, options, changes, vary=KINDS if vary is None else vary, **more)


def run_comparison(vary=None, out="c", report=lambda event: None, **more):
    """Plan and train; the result."""
    return Session.new(make_trial_spec(vary, **more), out, lambda event: None).run(report)
