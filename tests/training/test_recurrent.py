"""`weft train --model rnn|gru|lstm`: learned, written, measured; the same after a crash, the carried state included."""

import json
import math

import numpy as np
import pytest
import torch

from fixtures.commands import read_last_event, run_until_crash, run_weft, set_flags
from fixtures.runs import hash_run, read_metrics
from fixtures.texts import make_text
from weft.checkpoints import checkpoint
from weft.tasks import load
from weft.tasks.generate import task as generate
from weft.training import resume
from weft.training.trainer import Trainer

KINDS = ["rnn", "gru", "lstm"]
STEPS = 36
TINY = ("model.width=12", "model.depth=2", "model.dropout=0.2", "data.length=8", "training.batch=6")
EVERY = (
    "training.precision=float32",
    "training.micro_batch=4",
    "training.evaluate_every=9",
    "training.checkpoint_every=7",
)


def words(out, kind="lstm", steps=STEPS, *more):
    base = ["train", "book.txt", "--model", kind, "--tokenizer", "characters", "--out", str(out), "--threads", "1"]
    return [*base, "--steps", str(steps), *set_flags(*TINY, *EVERY), *more]


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A text of 540 tokens to learn from: an epoch is 11 steps, so that 36 reach into a fourth."""
    folder = tmp_path_factory.mktemp("recurrent")
    (folder / "book.txt").write_text(make_text(600))
    for kind in KINDS:
        run_weft(*words(folder / kind, kind), cwd=folder)
    return folder


POINTS = {
    "after step 3": (Trainer, "_step", 3, True),
    "after step 11, at the end of an epoch": (Trainer, "_step", 11, True),
    "after step 12, in the second epoch": (Trainer, "_step", 12, True),
    "after step 29": (Trainer, "_step", 29, True),
    "in an evaluation": (generate, "evaluate_text", 2, True),
    "in a save": (checkpoint, "save_file", 5, True),
}


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_changes_nothing(desk, point):
    out = desk / point.replace(" ", "-").replace(",", "")
    run_until_crash(POINTS[point], *words(out), cwd=desk)
    run_weft("resume", str(out), cwd=desk)
    assert hash_run(out) == hash_run(desk / "lstm")
    assert "checkpoints/step-36/carried.safetensors" in hash_run(out)
    assert [line["step"] for line in read_metrics(out)] == list(range(1, STEPS + 1))


@pytest.mark.parametrize("kind", ["rnn", "gru"])
def test_a_crash_changes_nothing_in_the_other_kinds(desk, kind):
    run_until_crash((Trainer, "_step", 17, True), *words(f"cut-{kind}", kind), cwd=desk)
    run_weft("resume", f"cut-{kind}", cwd=desk)
    assert hash_run(desk / f"cut-{kind}") == hash_run(desk / kind)


def test_negative_control_a_resume_without_the_carried_state_is_noticed(desk, monkeypatch):
    run_until_crash((Trainer, "_step", 17, True), *words("forgetful"), cwd=desk)
    monkeypatch.setattr(resume.TrainingState, "load_carried", lambda state, tensors: None)
    run_weft("resume", "forgetful", cwd=desk)
    ours, theirs = read_metrics(desk / "forgetful"), read_metrics(desk / "lstm")
    assert ours[:14] == theirs[:14] and ours[14] != theirs[14]  # from the checkpoint at step 14 on


def test_training_further_goes_on_with_the_state(desk):
    run_weft(*words("further", "gru", 9), cwd=desk)
    run_weft("resume", "further", "--steps", "5", cwd=desk)
    assert [line["step"] for line in read_metrics(desk / "further")] == list(range(1, 15))


@pytest.mark.parametrize("kind", KINDS)
def test_what_it_gives(desk, kind):
    run = load(desk / kind)
    ids = torch.randint(run.tokenizer.vocab_size, (2, 5))
    assert run.model(ids).shape == (2, 5, run.tokenizer.vocab_size)
    assert run.model_config.context is None and run.config.data.length == 8
    assert len(run.generate("The cat", max_tokens=7, temperature=0)) == 7
    found = json.loads(run_weft("evaluate", kind, "--json", cwd=desk).stdout)
    last = read_metrics(desk / kind)[-1]
    assert math.isclose(found["loss"], last["validation_loss"], rel_tol=1e-6)
    assert run.embed(["one", "another text"]).shape == (2, 12)
    assert np.allclose(run.embed("one"), run.embed(["one", "another text"])[0], atol=1e-6)
    assert "weft generate" in (desk / kind / "README.md").read_text()
    assert "export" not in (desk / kind / "README.md").read_text()


def test_prompts_of_different_lengths_are_written_on_together_as_alone(desk):
    run = load(desk / "lstm")
    prompts = ["The cat", "A", "Then slowly the dog ran"]
    together = run.generate(prompts, max_tokens=12, temperature=0)
    assert together == [run.generate(prompt, max_tokens=12, temperature=0) for prompt in prompts]
    drawn = run.samples("The", samples=3, max_tokens=12, seed=1)
    assert len({sample.text for sample in drawn}) > 1


def test_it_learns(tmp_path):
    (tmp_path / "book.txt").write_text(make_text(6000))
    words_ = ["train", "book.txt", "--model", "lstm", "--tokenizer", "characters", "--out", "run", "--threads", "1"]
    run_weft(*words_, "--steps", "60", *set_flags("model.width=48", "model.depth=1", "data.length=16"), cwd=tmp_path)
    lines = read_metrics(tmp_path / "run")
    assert abs(lines[0]["loss"] - math.log(load(tmp_path / "run").tokenizer.vocab_size)) < 0.05
    assert lines[-1]["validation_loss"] < 1.8


def test_another_run_begins_with_its_weights(desk):
    more = ["--steps", "2", "--threads", "1", "--json"]
    result = run_weft("train", "book.txt", "--from", "lstm", "--out", "begun", *more, cwd=desk)
    assert json.loads((desk / "begun" / "config.json").read_text())["model"]["kind"] == "lstm"
    assert read_last_event(result)["validation_loss"] < read_metrics(desk / "lstm")[0]["loss"]
    run_weft("train", "book.txt", "--from", "lstm", "--freeze", "1", "--out", "frozen", *more, cwd=desk)
    before, after = load(desk / "lstm").model.state_dict(), load(desk / "frozen").model.state_dict()
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert moved and not any(name.startswith(("tokens.", "layers.0.")) for name in moved)


@pytest.mark.parametrize(
    ("typed", "code", "said"),
    [
        (["--model", "lstmm"], 2, "did you mean 'lstm'"),
        (["--model", "lstm", "--set", "model.widht=8"], 2, "did you mean 'width'"),
        (["--model", "lstm", "--set", "model.max_length=8"], 2, "unknown field 'max_length'"),
        (["--model", "lstm", "--set", "model.both_ways=true"], 2, "would see the token that it predicts"),
        (["--model", "lstm", "--set", "training.batch=200", "--steps", "1"], 1, "200 streams"),
        (["--model", "gru", "--tokenizer", "wordpiece"], 2, "does not give text back"),
        (["--model", "bert"], 1, "bert does not continue a text"),
    ],
)
def test_typed_mistakes(desk, typed, code, said):
    result = run_weft("train", "generate", "book.txt", *typed, "--out", "no", cwd=desk, check=False)
    assert result.returncode == code and said in result.stderr
    assert len(result.stderr[result.stderr.index("weft: ") :].splitlines()) <= 3
    assert not (desk / "no").exists()


def test_export_is_refused_with_a_reason(desk):
    result = run_weft("export", "lstm", "theirs", "--to", "hf", cwd=desk, check=False)
    assert result.returncode == 1 and "not lstm" in result.stderr and not (desk / "theirs").exists()


def test_a_dry_run_says_what_it_would_do(desk):
    result = run_weft("train", "book.txt", "--model", "gru", "--minutes", "0.05", "--dry-run", "--json", cwd=desk)
    plan = next(json.loads(line) for line in result.stdout.splitlines() if '"plan"' in line)
    assert plan["model"] == "gru" and plan["steps"] >= 1 and plan["parameters"] > 1000 and plan["flops"] > 0
