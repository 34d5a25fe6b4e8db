"""`weft train classify --model bag-of-words`: every kind of label, the same verbs, the same bytes after a crash."""

import json

import pytest

from fixtures.commands import read_last_event, run_until_crash, run_weft, set_flags
from fixtures.runs import hash_run, read_metrics
from fixtures.tables import write_multilabel_table, write_regression_table, write_reviews, write_text_pairs
from fixtures.texts import GOOD
from weft.tasks import load
from weft.training.trainer import Trainer

QUICK = (
    "training.optimizer.learning_rate=0.05", "training.batch=16", "training.micro_batch=10",
    "training.precision=float32",  # else each run measures which is faster, and two of them may find otherwise
)  # fmt: skip


def words(data, out, steps=60, *more):
    base = ["train", "classify", data, "--model", "bag-of-words", "--out", str(out), "--threads", "1"]
    return [*base, "--steps", str(steps), *set_flags(*QUICK), *more]


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bags")
    write_reviews(folder / "reviews.csv", 120)
    write_reviews(folder / "test.csv", 30, seed=7)
    write_text_pairs(folder / "pairs.csv", 96)
    write_multilabel_table(folder / "several.csv")
    write_regression_table(folder / "numbers.csv", 120)
    result = run_weft(*words("reviews.csv", "run", 60, "--test", "test.csv", "--json"), cwd=folder)
    (folder / "told.json").write_text(json.dumps(read_last_event(result)))
    return folder


def test_texts_are_told_apart(desk):
    told = json.loads((desk / "told.json").read_text())
    assert told["accuracy"] > 0.9 and told["measured_on"] == "test"
    assert read_metrics(desk / "run")[0]["loss"] == pytest.approx(0.6931, abs=1e-3)
    found = json.loads(run_weft("evaluate", "run", "test.csv", "--json", cwd=desk).stdout)
    assert found["accuracy"] == told["accuracy"]
    assert json.loads((desk / "run" / "calibration.json").read_text())["temperature"] > 0
    said = run_weft("classify", "run", "a lovely great film", cwd=desk).stdout
    assert said.split()[0] in ("neg", "pos") and "%" in said


def test_shuffled_words_are_the_same_text(desk):
    """A bag of words ignores order (document 002)."""
    run = load(desk / "run")
    first, second = run.classify(["the film was lovely and great", "great and the lovely was film"])
    assert first.label == second.label == "pos"
    assert first.probabilities == second.probabilities
    assert run.classify("the film was grim and awful").label == "neg"


def test_a_crash_changes_nothing(desk):
    every = set_flags("training.evaluate_every=5", "training.checkpoint_every=4", "model.dropout=0.3")
    run_weft(*words("reviews.csv", "alone", 26, *every), cwd=desk)
    run_until_crash((Trainer, "_step", 10, True), *words("reviews.csv", "cut", 26, *every), cwd=desk)
    run_weft("resume", "cut", cwd=desk)
    assert hash_run(desk / "cut") == hash_run(desk / "alone")


def test_pairs(desk):
    result = run_weft(*words("pairs.csv", "pairs", 60, "--json"), cwd=desk)
    assert read_last_event(result)["accuracy"] > 0.9
    run = load(desk / "pairs")
    assert run.model_config.pairs and run.model_config.features == 3 * run.tokenizer.vocab_size
    good, bad = ("the film was lovely", "a story of great warm"), ("the film was lovely", "a story of grim cold")
    assert [answer.label for answer in run.classify([good, bad])] == ["same", "other"]
    assert not load(desk / "run").model_config.pairs


def test_several_labels(desk):
    run_weft(*words("several.csv", "several", 80), cwd=desk)
    answers = load(desk / "several").classify(["the fine warm frost snow", "a lovely great fine warm"])
    assert [sorted(answer.label) for answer in answers] == [["cold", "good"], ["good"]]


def test_numbers(desk):
    assert read_last_event(run_weft(*words("numbers.csv", "numbers", 150, "--json"), cwd=desk))["spearman"] > 0.6
    good, bad = (answer.label for answer in load(desk / "numbers").classify(["a lovely warm film", "a grim cold film"]))
    assert 320 < good < 480 and 20 < bad < 180


def test_what_it_says_and_refuses(desk):
    said = run_weft(*words("reviews.csv", "none", 3, "--dry-run"), cwd=desk).stderr
    assert "Model: bag-of-words, 0.00 M parameters" in said and "layers" not in said
    result = run_weft("train", "classify", "reviews.csv", "--model", "bag-of-word", cwd=desk, check=False)
    assert result.returncode == 2 and "did you mean 'bag-of-words'" in result.stderr
    for verb, more in (("generate", "Once"), ("embed", "a text"), ("fill", "a [MASK]"), ("translate", "x")):
        result = run_weft(verb, "run", more, cwd=desk, check=False)
        assert result.returncode == 1 and 1 <= len(result.stderr.splitlines()) <= 3, result.stderr
    result = run_weft("export", "run", "out", cwd=desk, check=False)
    assert result.returncode == 1 and "Traceback" not in result.stderr


def test_it_begins_from_another_run(desk):
    """With the same labels its weights are gone on with; a word that the second table never has is still known."""
    rows = (desk / "test.csv").read_text().splitlines()
    (desk / "few.csv").write_text("\n".join(row for row in rows if not any(word in row for word in GOOD[:1])) + "\n")
    run_weft("train", "classify", "few.csv", "--from", "run", "--steps", "2", "--out", "second", cwd=desk)
    run = load(desk / "second")
    assert run.model_config.kind == "bag-of-words"
    assert run.classify("fine").label == "pos"
