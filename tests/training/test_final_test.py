"""`--test`: measured once, at the very end, on the best weights, and never a reason for anything."""

import json
import shutil
from pathlib import Path

import pytest

import weft as package
from fixtures.commands import TINY_GPT, generator_command, read_last_event, run_weft
from fixtures.runs import hash_run
from fixtures.texts import make_text
from training.processes import run_until_killed
from weft.tasks import load

STEPS = 30
WORDS = ["--set", "training.evaluate_every=9", "--set", "training.checkpoint_every=6"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work")
    (folder / "book.txt").write_text(make_text(1500))
    (folder / "test.txt").write_text(make_text(700, seed=5))
    return folder


def with_test(out, *more):
    return generator_command("book.txt", out, STEPS, *WORDS, "--test", "test.txt", *more)


@pytest.fixture(scope="module")
def undisturbed(folder):
    return folder / "alone", read_last_event(run_weft(*with_test("alone", "--json"), cwd=folder))


def test_the_last_event_has_the_metrics_of_the_test(folder, undisturbed):
    run, event = undisturbed
    assert event["measured_on"] == "test"
    of_test = load(run).evaluate(str(folder / "test.txt"))
    assert event["test_loss"] == pytest.approx(of_test["loss"], abs=1e-6)
    assert event["bits_per_byte"] == pytest.approx(of_test["bits_per_byte"], abs=1e-6)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert event["validation_loss"] == min(line.get("validation_loss", 9) for line in lines)
    assert abs(event["test_loss"] - event["validation_loss"]) > 1e-4, "else nothing was told apart"
    assert json.loads((run / "test.json").read_text())["test_loss"] == event["test_loss"]
    assert json.loads((run / "config.json").read_text())["data"]["test"] == ["test.txt"]


def test_training_does_not_know_of_the_test(folder, undisturbed):
    event = read_last_event(run_weft(*generator_command("book.txt", "without", STEPS, *WORDS, "--json"), cwd=folder))
    assert event["measured_on"] == "validation" and "test_loss" not in event
    assert not (folder / "without" / "test.json").exists()
    for name in ("metrics.jsonl", "model.safetensors"):
        assert (folder / "without" / name).read_bytes() == (undisturbed[0] / name).read_bytes()


def test_killed_before_the_test_it_is_measured_on_resuming(folder, undisturbed):
    run_until_killed("test", 1, *with_test("killed"), cwd=folder)
    assert not (folder / "killed" / "test.json").exists()
    event = read_last_event(run_weft("resume", "killed", "--json", cwd=folder))
    same = ("steps", "validation_loss", "test_loss", "bits_per_byte", "measured_on")
    assert {name: event[name] for name in same} == {name: undisturbed[1][name] for name in same}
    assert hash_run(folder / "killed") == hash_run(undisturbed[0])


def test_another_test_text_is_refused_on_resuming(folder, undisturbed, tmp_path):
    run = shutil.copytree(undisturbed[0], tmp_path / "run")
    shutil.copy(folder / "book.txt", tmp_path)
    (tmp_path / "test.txt").write_text(make_text(700, seed=6))
    result = run_weft("resume", str(run), cwd=tmp_path, check=False)
    assert result.returncode == 1
    assert "the text in test.txt has changed since this run began\n" in result.stderr
    (tmp_path / "test.txt").write_text(make_text(700, seed=5))
    run_weft("resume", str(run), cwd=tmp_path)


def test_trained_further_it_is_measured_again(folder, undisturbed, tmp_path):
    run = shutil.copytree(undisturbed[0], tmp_path / "run")
    event = read_last_event(run_weft("resume", str(run), "--steps", "40", "--json", cwd=folder))
    assert event["measured_on"] == "test"
    assert event["test_loss"] != undisturbed[1]["test_loss"]
    assert event["test_loss"] == pytest.approx(load(run).evaluate(str(folder / "test.txt"))["loss"], abs=1e-6)


def test_the_best_weights_are_measured_and_not_the_last(folder, tmp_path, monkeypatch):
    """A text that is soon learned by heart: the last weights are worse than the best."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(folder / "test.txt", tmp_path)
    (tmp_path / "little.txt").write_text(make_text(300))
    changes = dict(setting.split("=") for setting in TINY_GPT) | {
        "model.width": 64, "model.dropout": 0, "training.evaluate_every": 10, "training.optimizer.kind": "adamw",
        "training.optimizer.learning_rate": 0.01,
    }  # fmt: skip
    options = {"tokenizer": "characters", "steps": 120, "threads": 1, "out": "run"}
    run = package.train("little.txt", task="generate", test="test.txt", set=changes, **options)
    found = json.loads(Path("run/test.json").read_text())
    assert found["step"] < 120
    assert found["test_loss"] == pytest.approx(run.evaluate("test.txt")["loss"], abs=1e-6)
    from weft.checkpoints import load_newest

    last = load_newest(Path("run/checkpoints"))
    run.model.load_state_dict(last.tensors["model"], strict=False)
    assert run.evaluate("test.txt")["loss"] > found["test_loss"] + 0.01


def test_in_words(folder, tmp_path):
    result = run_weft(*with_test(str(tmp_path / "run")), cwd=folder)
    assert "700 are for the test at the end" in " ".join(result.stderr.split())
    assert any("on the test text (" in line for line in result.stderr.splitlines() if line.startswith("Done"))


def test_a_test_text_that_cannot_be_measured_on(folder, tmp_path):
    (tmp_path / "x.txt").write_text("x")
    result = run_weft("train", "book.txt", "--test", str(tmp_path / "x.txt"), "--dry-run", cwd=folder, check=False)
    assert result.returncode == 1 and "1 tokens of" in result.stderr


def test_a_sample_before_and_after(folder, tmp_path):
    done = run_weft(
        *generator_command("book.txt", str(tmp_path / "run"), STEPS, "--sample", "The", "--json"), cwd=folder
    )
    found = [event for event in map(json.loads, done.stdout.splitlines()) if event["event"] == "sample"]
    assert [event["when"] for event in found] == ["before", "after"]
    assert found[0]["text"] != found[1]["text"]
    told = load(tmp_path / "run").generate("The", max_tokens=60)
    assert found[1]["text"] == told  # of the weights that were kept
    plain = run_weft(*generator_command("book.txt", str(tmp_path / "plain"), STEPS), cwd=folder)
    assert plain.returncode == 0
    assert hash_run(tmp_path / "run") == hash_run(tmp_path / "plain"), "looking changes nothing"
