"""Two processes, each with its own streams: what one process gives, and a resume that hands every stream its state."""

import json

import pytest
from safetensors.torch import load_file

from fixtures.commands import run_weft_process, set_flags
from fixtures.runs import hash_run
from fixtures.texts import make_text
from training.processes import KILL_AT, torchrun

STEPS = 16
TINY = ("model.width=8", "model.depth=1", "data.length=8", "training.batch=5", "training.precision=float32")
SAVES = ("training.evaluate_every=8", "training.checkpoint_every=6")
pytestmark = pytest.mark.slow


def words(out, *more):
    base = ["train", "book.txt", "--model", "lstm", "--tokenizer", "characters", "--out", out, "--threads", "1"]
    return [*base, "--steps", str(STEPS), *set_flags(*TINY, *SAVES), *more]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    (folder / "book.txt").write_text(make_text(500))
    torchrun(folder, "-m", "weft", *words("together"))
    return folder


def test_two_ranks_give_what_one_gives(folder):
    run_weft_process(*words("alone"), cwd=folder)
    lines = [
        [json.loads(line) for line in (folder / run / "metrics.jsonl").read_text().splitlines()]
        for run in ("alone", "together")
    ]
    assert max(abs(a["loss"] - b["loss"]) for a, b in zip(*lines, strict=True)) < 1e-3
    carried = [
        load_file(folder / run / f"checkpoints/step-{STEPS}/carried.safetensors") for run in ("alone", "together")
    ]
    assert carried[0].keys() == carried[1].keys()
    for name, table in carried[0].items():
        assert table.shape == (5, 8) and table.abs().amax(1).min() > 1e-3
        assert (table - carried[1][name]).abs().max() < 1e-2


def test_a_kill_changes_nothing(folder):
    result = torchrun(folder, KILL_AT, "step", "9", *words("killed"), check=False)
    assert result.returncode != 0
    torchrun(folder, "-m", "weft", "resume", "killed")
    assert hash_run(folder / "killed") == hash_run(folder / "together")
