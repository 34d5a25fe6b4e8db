"""`weft train classify --model lstm`: texts are told apart, in every kind of label, and the same after a crash."""

import json

import pytest

from fixtures.commands import read_last_event, run_until_crash, run_weft, set_flags
from fixtures.runs import hash_run, read_metrics
from fixtures.tables import write_reviews, write_text_pairs
from weft.tasks import load
from weft.training.trainer import Trainer

KINDS = ["rnn", "gru", "lstm"]
TINY = (
    "model.width=16", "model.dropout=0.1", "training.batch=16", "training.micro_batch=10",
    "training.optimizer.learning_rate=0.02", "training.precision=float32",
)  # fmt: skip


def words(data, out, kind="lstm", steps=40, *more):
    base = ["train", "classify", data, "--tokenizer", "wordpiece", "--out", str(out), "--threads", "1"]
    return [*base, "--steps", str(steps), "--model", kind, *set_flags(*TINY), *more]


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classify")
    write_reviews(folder / "reviews.csv", 120)
    write_reviews(folder / "test.csv", 30, seed=7)
    write_text_pairs(folder / "pairs.csv", 60)
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_texts_are_told_apart(desk, kind):
    result = run_weft(*words("reviews.csv", kind, kind, 40, "--test", "test.csv", "--json"), cwd=desk)
    assert read_last_event(result)["accuracy"] > 0.9 and read_last_event(result)["measured_on"] == "test"
    run = load(desk / kind)
    assert run.model_config.both_ways and run.model_config.head.labels == ("neg", "pos")
    answers = run.classify(["a lovely great film", "the story was grim and awful"])
    assert [answer.label for answer in answers] == ["pos", "neg"]
    assert abs(sum(answers[0].probabilities.values()) - 1) < 1e-9
    assert run.classify("a lovely great film").probability == pytest.approx(answers[0].probability, abs=1e-6)
    found = json.loads(run_weft("evaluate", kind, "test.csv", "--json", cwd=desk).stdout)
    assert found["accuracy"] == read_last_event(result)["accuracy"]
    assert json.loads((desk / kind / "calibration.json").read_text())["temperature"] > 0
    assert run.embed(["one", "another film"]).shape == (2, 16)


def test_a_crash_changes_nothing(desk):
    every = set_flags("training.evaluate_every=5", "training.checkpoint_every=4")
    run_weft(*words("reviews.csv", "alone", "gru", 26, *every), cwd=desk)
    run_until_crash((Trainer, "_step", 10, True), *words("reviews.csv", "cut", "gru", 26, *every), cwd=desk)
    run_weft("resume", "cut", cwd=desk)
    assert hash_run(desk / "cut") == hash_run(desk / "alone")
    assert [line["step"] for line in read_metrics(desk / "cut")] == list(range(1, 27))


def test_pairs_and_other_pools(desk):
    for pool in ("max", "last"):
        run_weft(*words("pairs.csv", pool, "gru", 6, "--set", f"model.head.pool={pool}"), cwd=desk)
        run = load(desk / pool)
        assert run.model_config.head.pool == pool
        assert run.classify(("a film", "a grim story")).label in ("same", "other")


def test_a_model_that_does_not_write_says_so(desk):
    if not (desk / "lstm").exists():
        run_weft(*words("reviews.csv", "lstm", "lstm", 2), cwd=desk)
    result = run_weft("generate", "lstm", "Once", cwd=desk, check=False)
    assert result.returncode == 1 and "lstm: it reads text and does not write" in result.stderr
    result = run_weft("train", "classify", "reviews.csv", "--model", "lstmm", cwd=desk, check=False)
    assert result.returncode == 2 and "did you mean 'lstm'" in result.stderr


def test_it_begins_from_another_run(desk):
    run_weft(*words("reviews.csv", "first", "gru", 4), cwd=desk)
    run_weft("train", "classify", "test.csv", "--from", "first", "--steps", "2", "--out", "second", cwd=desk)
    assert load(desk / "second").model_config.kind == "gru"
