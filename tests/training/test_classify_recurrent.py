"""`weft train classify --model lstm`: texts are told apart, in every kind of label, and the same after a crash."""

import json

import pytest

from table_setup import crash, metrics, sets, write_pairs, write_reviews
from training_setup import digest, done, here
from weft.tasks import load
from weft.training.trainer import Trainer

KINDS = ["rnn", "gru", "lstm"]
TINY = (
    "model.width=16", "model.dropout=0.1", "training.batch=16", "training.micro_batch=10",
    "training.optimizer.learning_rate=0.02", "training.precision=float32",
)  # fmt: skip


def words(data, out, kind="lstm", steps=40, *more):
    base = ["train", "classify", data, "--tokenizer", "wordpiece", "--out", str(out), "--threads", "1"]
    return [*base, "--steps", str(steps), "--model", kind, *sets(*TINY), *more]


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classify")
    write_reviews(folder / "reviews.csv", 120)
    write_reviews(folder / "test.csv", 30, seed=7)
    write_pairs(folder / "pairs.csv", 60)
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_texts_are_told_apart(desk, kind):
    result = here(*words("reviews.csv", kind, kind, 40, "--test", "test.csv", "--json"), cwd=desk)
    assert done(result)["accuracy"] > 0.9 and done(result)["measured_on"] == "test"
    run = load(desk / kind)
    assert run.model_config.both_ways and run.model_config.head.labels == ("neg", "pos")
    answers = run.classify(["a lovely great film", "the story was grim and awful"])
    assert [answer.label for answer in answers] == ["pos", "neg"]
    assert abs(sum(answers[0].probabilities.values()) - 1) < 1e-9
    assert run.classify("a lovely great film").probability == pytest.approx(answers[0].probability, abs=1e-6)
    found = json.loads(here("evaluate", kind, "test.csv", "--json", cwd=desk).stdout)
    assert found["accuracy"] == done(result)["accuracy"]
    assert json.loads((desk / kind / "calibration.json").read_text())["temperature"] > 0
    assert run.embed(["one", "another film"]).shape == (2, 16)


def test_a_crash_changes_nothing(desk):
    every = sets("training.evaluate_every=5", "training.checkpoint_every=4")
    here(*words("reviews.csv", "alone", "gru", 26, *every), cwd=desk)
    crash((Trainer, "_step", 10, True), *words("reviews.csv", "cut", "gru", 26, *every), cwd=desk)
    here("resume", "cut", cwd=desk)
    assert digest(desk / "cut") == digest(desk / "alone")
    assert [line["step"] for line in metrics(desk / "cut")] == list(range(1, 27))


def test_pairs_and_other_pools(desk):
    for pool in ("max", "last"):
        here(*words("pairs.csv", pool, "gru", 6, "--set", f"model.head.pool={pool}"), cwd=desk)
        run = load(desk / pool)
        assert run.model_config.head.pool == pool
        assert run.classify(("a film", "a grim story")).label in ("same", "other")


def test_a_model_that_does_not_write_says_so(desk):
    if not (desk / "lstm").exists():
        here(*words("reviews.csv", "lstm", "lstm", 2), cwd=desk)
    result = here("generate", "lstm", "Once", cwd=desk, check=False)
    assert result.returncode == 1 and "lstm: it reads text and does not write" in result.stderr
    result = here("train", "classify", "reviews.csv", "--model", "lstmm", cwd=desk, check=False)
    assert result.returncode == 2 and "did you mean 'lstm'" in result.stderr


def test_it_begins_from_another_run(desk):
    here(*words("reviews.csv", "first", "gru", 4), cwd=desk)
    here("train", "classify", "test.csv", "--from", "first", "--steps", "2", "--out", "second", cwd=desk)
    assert load(desk / "second").model_config.kind == "gru"
