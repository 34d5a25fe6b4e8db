"""A process for each variant: its memory is its own, Ctrl-C saves, and its death is a reason."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from comparison.tiny_comparisons import TINY_SETTINGS, make_trial_spec, run_comparison
from fixtures.comparisons import comparison_command
from fixtures.runs import hash_run
from weft.checkpoints.status import is_locked, run_status
from weft.comparison import process
from weft.comparison.outcome import read_outcome
from weft.comparison.session import Session
from weft.tasks import environment

pytestmark = pytest.mark.usefixtures("folder")
LONG = {"steps": 100_000}
STEPS = 1500  # enough to be stopped on the way


def silent(event):
    pass


@pytest.mark.slow
def test_peak_memory_is_that_of_the_variant_alone():
    ballast = np.ones(400 * 2**20, dtype=np.uint8)  # which a child would inherit in `getrusage`
    assert environment.peak_memory() > ballast.nbytes + 200 * 2**20
    sizes = {key: value for key, value in TINY_SETTINGS.items() if key != "model.width"}
    changes = {"training.optimizer.kind": "adamw", "training.precision": "float32"}
    wide = make_trial_spec({"model.width": [512, 16]}, sizes=sizes, changes=changes, options={"steps": 1})
    made = Session.new(wide, "c", silent)
    large, small = made.run(silent).rows  # the larger first: the second one does not have its peak
    weights = 4 * (large["parameters"] - small["parameters"])
    assert large["peak_memory"] > small["peak_memory"] + 2 * weights  # and gradients at least
    assert small["peak_memory"] < environment.peak_memory() - 200 * 2**20
    assert small["seconds"] > 0.5  # the interpreter and torch count too


def stopping_at(step, times=1):
    """Ctrl-C, so many times, once the child has come so far."""
    left = [times]

    def report(event):
        if event["event"] == "step" and event["step"] >= step and left[0]:
            left[0] -= 1
            raise KeyboardInterrupt

    return report


def test_ctrl_c_saves(folder):
    made = Session.new(make_trial_spec(options=LONG), "c", silent)
    with pytest.raises(KeyboardInterrupt):
        made.run(stopping_at(3))
    status = run_status(folder / "c" / "softmax")
    assert status.state == "interrupted" and status.step >= 3
    assert [row["status"] for row in made.result().rows] == ["interrupted", "waiting"]
    assert read_outcome(folder / "c" / "softmax")["seconds"] > 0


@pytest.mark.slow
def test_a_second_ctrl_c_does_not_wait(folder):
    made = Session.new(make_trial_spec(options=LONG), "c", silent)
    with pytest.raises(KeyboardInterrupt):
        made.run(stopping_at(2, times=2))
    assert not is_locked(folder / "c" / "softmax")  # nobody is left at work


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("kill -9 $$", "its process was killed: was there enough memory?"),
        ("exit 3", "its process ended with exit code 3"),
        ("echo a; echo why >&2; exit 3", "its process ended with exit code 3: why"),
        ("echo reading >&2; echo weft: no >&2; echo yes >&2; exit 2", "no\nyes"),
        ('echo noise; echo \'[1]\'; echo \'{"event": "failed", "reason": "no luck"}\'; exit 1', "no luck"),
    ],
)
def test_a_death_is_a_reason(folder, monkeypatch, script, told):
    (folder / "python").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "python").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    assert process.run_in_child(["train"], silent) == told


def test_the_peak_is_told_without_proc(monkeypatch):
    told = environment.peak_memory()
    monkeypatch.setattr(environment, "Path", lambda name: folderless)
    folderless = type("Gone", (), {"read_text": lambda *_, **__: (_ for _ in ()).throw(OSError())})()
    assert environment.peak_memory() == pytest.approx(told, rel=0.05)


# -- as a user meets it -----------------------------------------------------------------------


def started(folder, *more):
    """`weft compare` as a process; its first steps have been taken."""
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    made = subprocess.Popen(
        [sys.executable, "-m", "weft", *comparison_command(*more, steps=STEPS)],
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in made.stderr:
        if line.startswith(f"step 100/{STEPS}"):
            return made
    raise AssertionError(made.wait())


VARY = ("--vary", "model.attention.kind=softmax,hard", "--out", "c", "--set", "training.evaluate_every=100")


@pytest.mark.slow
def test_ctrl_c_and_resume_end_with_the_same_bytes(folder):
    whole = run_comparison(out="whole", options={"steps": STEPS}, changes={"training.evaluate_every": "100"})
    made = started(folder, *VARY)
    made.send_signal(signal.SIGINT)
    out, err = made.communicate(timeout=60)
    assert made.returncode == 130 and "weft compare --resume c" in err and "Traceback" not in err and not out
    again = [sys.executable, "-m", "weft", "compare", "--resume", "c", "--json"]
    done = subprocess.run(again, cwd=folder, capture_output=True, text=True, timeout=120, check=True)
    rows = json.loads(done.stdout)["models"]
    for old, new in zip(whole.rows, rows, strict=True):
        assert hash_run(folder / "whole" / old["model"]) == hash_run(folder / "c" / new["model"])


@pytest.mark.slow
def test_a_child_does_not_outlive_its_parent(folder):
    made = started(folder, *VARY)
    made.kill()
    made.communicate()
    end = time.monotonic() + 30
    while is_locked(folder / "c" / "softmax") and time.monotonic() < end:
        time.sleep(0.2)
    status = run_status(folder / "c" / "softmax")
    assert status.state == "interrupted" and 100 <= status.step < STEPS  # saved, not killed
