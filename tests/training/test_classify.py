"""`weft train classify`: what it learns, how it is judged, and that a run that was stopped ends with the same bytes."""

import json
import os
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import weft as package
from fixtures.commands import (
    SAVE_OFTEN,
    TINY_READER,
    classifier_command,
    read_error_lines,
    read_last_event,
    run_until_crash,
    run_weft,
    run_weft_process,
    set_flags,
)
from fixtures.runs import hash_run, read_metrics
from fixtures.tables import make_reviews, write_regression_table, write_reviews, write_table
from training.processes import run_until_killed
from weft.checkpoints import checkpoint
from weft.checkpoints.files import read_tensors
from weft.models import BERTConfig, PackedTexts
from weft.objectives.classification import class_logits
from weft.tasks.classify import evaluator
from weft.tasks.classify.classifier import Classifier
from weft.tasks.classify.tables import TableConfig, read_tables
from weft.training.trainer import Trainer


def plan_of(cwd, data, *more):
    """What would be done."""
    result = run_weft(*classifier_command(data, "none", 3, "--dry-run", "--json", *more), cwd=cwd)
    return json.loads(result.stdout.splitlines()[-1])


def config_of(run):
    return json.loads((run / "config.json").read_text())


def temperature_of(run):
    return json.loads((run / "calibration.json").read_text())["temperature"]


def logits_of(model, run, texts):
    """What a model says of each text alone."""
    rows = [run.tokenizer.encode_pair(text)[0].astype(np.int64) for text in texts]
    with torch.inference_mode():
        return torch.cat([class_logits(model, PackedTexts.of([ids])) for ids in rows]).double()


def learned_logits(run, texts):
    """Of the model as it was trained, without what was found out after it."""
    return logits_of(run.model_config.with_weights(read_tensors(run.directory.model_file)).eval(), run, texts)


# -- learning ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["single", "pairs"])
def test_what_is_easily_told_apart_is_learned(desk, kind):
    last = read_metrics(desk.run(kind))[-1]
    assert last["accuracy"] == 1.0 and last["macro_f1"] == 1.0
    assert last["validation_loss"] < 0.1
    assert abs(read_metrics(desk.run(kind))[0]["loss"] - np.log(2)) < 0.05


def test_several_labels_are_learned(desk):
    run = desk.run("several")
    assert max(line.get("exact_match", 0) for line in read_metrics(run)) > 0.8
    config = config_of(run)
    assert config["data"]["kind"] == "multilabel" and config["data"]["separator"] == "|"
    assert config["model"]["head"]["multilabel"] and config["model"]["head"]["labels"] == ["cold", "good"]
    answers = package.load(run).classify(
        ["the fine warm frost snow", "a lovely great fine warm", "it icy snow frost winter"]
    )
    assert [sorted(answer.label) for answer in answers] == [["cold", "good"], ["good"], ["cold"]]
    assert answers[0].probability is None and set(answers[0].probabilities) == {"cold", "good"}


def test_negative_control_shuffled_labels_stay_near_chance(tmp_path):
    rng = random.Random(5)
    for name, seed in (("train.csv", 0), ("dev.csv", 7)):
        rows = make_reviews(96, seed)
        labels = [label for _, label in rows]
        rng.shuffle(labels)
        write_table(
            tmp_path / name, ("text", "label"), [(t, label) for (t, _), label in zip(rows, labels, strict=True)]
        )
    words = classifier_command("train.csv", "run", 20, "--validation", "dev.csv", "--json")
    assert 0.3 < read_last_event(run_weft(*words, cwd=tmp_path))["accuracy"] < 0.7


def test_the_run_directory_says_what_was_learned(desk):
    run = desk.run("single")
    config = config_of(run)
    assert config["task"] == "classify" and config["model"]["head"]["labels"] == ["neg", "pos"]
    data = config["data"]
    assert (data["text"], data["label"], data["pair"], data["kind"]) == ("text", "label", None, "single")
    assert data["rows"] == 86 and data["length"] == 24
    assert 0 < temperature_of(run) < 21
    lines = read_metrics(run)
    assert set(lines[0]) == {"step", "tokens", "loss", "learning_rate", "gradient_norm"}
    assert set(lines[9]) - set(lines[0]) == {"validation_loss", "accuracy", "macro_f1"}
    assert (run / "report.html").exists() and "weft resume" in (run / "README.md").read_text()


# -- numbers ----------------------------------------------------------------------------------


def test_numbers_come_out_as_they_are_in_the_table(desk):
    run = desk.run("number")
    data = config_of(run)["data"]
    truth = [float(line.rsplit(",", 1)[1]) for line in (desk.path / "number.csv").read_text().splitlines()[1:]]
    assert data["kind"] == "regression"
    assert abs(data["mean"] - np.mean(truth)) < 10 and abs(data["deviation"] - np.std(truth)) < 10
    good, bad = (answer.label for answer in package.load(run).classify(["a lovely warm film", "a grim cold film"]))
    assert 340 < good < 460 and 40 < bad < 160
    last = read_metrics(run)[-1]
    assert last["pearson"] > 0.99 and last["validation_loss"] < 0.05
    assert last["mean_squared_error"] == pytest.approx(last["validation_loss"] * data["deviation"] ** 2)


def test_the_model_of_a_run_is_mean_plus_deviation_times_what_was_learned(desk):
    run = package.load(desk.run("number"))
    data, texts = run.config.data, ["a fine film", "dull and cold", ""]
    learned, told_by = learned_logits(run, texts), logits_of(run.model, run, texts)
    assert torch.allclose(told_by, data.mean + data.deviation * learned, rtol=1e-4)
    assert learned.abs().max() < 5 < told_by.abs().min()  # a negative control: they differ


def test_a_number_learned_before_begins_with_a_fresh_head(desk, tmp_path):
    """The old one speaks in the units of another table, and would be hundreds of deviations away."""
    write_regression_table(tmp_path / "other.csv", 40, seed=8)
    words = ["train", "classify", "other.csv", "--from", str(desk.run("number")), "--out", "run", "--threads", "1"]
    run_weft(*words, "--steps", "2", *set_flags("training.evaluate_every=1", "training.batch=8"), cwd=tmp_path)
    assert all(0 <= line["validation_loss"] < 3 for line in read_metrics(tmp_path / "run"))
    start = read_tensors(tmp_path / "run" / "checkpoints" / "step-0" / "model.safetensors")
    before = read_tensors(desk.run("number") / "model.safetensors")
    assert torch.equal(start["tokens.weight"], before["tokens.weight"])
    assert not torch.equal(start["classes.1.weight"], before["classes.1.weight"])


# -- tables -----------------------------------------------------------------------------------


def test_the_form_of_the_table_changes_nothing(tmp_path):
    found = {}
    for form in ("csv", "tsv", "jsonl"):
        write_reviews(tmp_path / f"table.{form}", 40)
        run_weft(*classifier_command(f"table.{form}", form, 3), cwd=tmp_path)
        found[form] = hash_run(tmp_path / form)["model.safetensors"], config_of(tmp_path / form)["data"]["fingerprint"]
    assert found["csv"] == found["tsv"] == found["jsonl"]


def test_several_tables_are_read_as_one(tmp_path):
    write_reviews(tmp_path / "one.csv", 30)
    write_reviews(tmp_path / "two.jsonl", 50, seed=4)
    plan = plan_of(tmp_path, ["one.csv", "two.jsonl"])
    assert plan["examples"] + plan["validation_examples"] == 80
    assert plan["event"] == "plan" and plan["classes"] == 2 and "test_examples" not in plan
    assert "usual name of a label" in plan["columns"]


def test_validation_and_test_tables(tmp_path):
    for name, count, seed in (("train.csv", 40, 0), ("dev.csv", 12, 5), ("test.csv", 20, 6)):
        write_reviews(tmp_path / name, count, seed)
    words = classifier_command("train.csv", "run", 4, "--validation", "dev.csv", "--test", "test.csv", "--json")
    events = [json.loads(line) for line in run_weft(*words, cwd=tmp_path).stdout.splitlines()]
    plan = next(event for event in events if event["event"] == "plan")
    assert (plan["examples"], plan["validation_examples"], plan["test_examples"]) == (40, 12, 20)
    last = events[-1]
    assert last["measured_on"] == "test" and "calibration_error" in last and len(last["confusion"]) == 2
    test = json.loads((tmp_path / "run" / "test.json").read_text())
    assert test["accuracy"] == last["accuracy"] and test["classes"]["pos"]["examples"] == 10
    measured = package.load(tmp_path / "run")
    with_own = _in(tmp_path, measured.evaluate)
    assert with_own["measured_on"] == "test" and with_own["examples"] == 20
    assert with_own["loss"] == pytest.approx(last["test_loss"], abs=1e-6)
    assert with_own["calibration_error"] == pytest.approx(last["calibration_error"], abs=1e-6)
    flipped = [(t, {"pos": "neg", "neg": "pos"}[label]) for t, label in make_reviews(20, 6)]
    write_table(tmp_path / "test.csv", ("text", "label"), flipped)
    words[words.index("--out") + 1] = "again"
    run_weft(*words, cwd=tmp_path)  # the test never chooses weights
    assert hash_run(tmp_path / "again")["model.safetensors"] == hash_run(tmp_path / "run")["model.safetensors"]


def _in(folder, work):
    before = Path.cwd()
    os.chdir(folder)
    try:
        return work()
    finally:
        os.chdir(before)


def test_columns_can_be_named(tmp_path):
    rows = [(n, t, "x", label, label.upper()) for n, (t, label) in enumerate(make_reviews(40))]
    write_table(tmp_path / "t.csv", ("id", "body", "note", "label", "truth"), rows)
    run_weft(*classifier_command("t.csv", "run", 2, "--text", "body", "--label", "truth"), cwd=tmp_path)
    config = config_of(tmp_path / "run")
    assert (config["data"]["text"], config["data"]["label"]) == ("body", "truth")
    assert config["model"]["head"]["labels"] == ["NEG", "POS"]
    run = package.load(tmp_path / "run")
    assert run.classify(" ") and run.classify("a film").label in ("NEG", "POS")


def test_rare_classes_weigh_more_where_it_matters(tmp_path):
    rows = make_reviews(88)
    few = [row for row in rows if row[1] == "neg"] + [row for row in rows if row[1] == "pos"][:4]
    write_table(tmp_path / "few.csv", ("text", "label"), few)
    write_table(tmp_path / "even.csv", ("text", "label"), rows)
    assert plan_of(tmp_path, "few.csv")["weighted"]
    assert not plan_of(tmp_path, "even.csv")["weighted"]
    assert not plan_of(tmp_path, "few.csv", *set_flags("objective.weights=none"))["weighted"]
    assert plan_of(tmp_path, "even.csv", *set_flags("objective.weights=balanced"))["weighted"]
    from weft.tasks.classify.task import ClassifyRunConfig, Labelled

    tables = read_tables(TableConfig(train=(str(tmp_path / "few.csv"),)))
    kind = BERTConfig(vocab_size=300, width=8)
    data = tables.config.override({"length": 256})
    config = ClassifyRunConfig(model=kind, tokenizer=None, data=data, training={"steps": 1, "batch": 4})
    labelled = Labelled(config, tables, package.load(_any_run(tmp_path)).tokenizer)
    counts = np.bincount(labelled.parts["train"].values)
    assert counts.max() >= 10 * counts.min()
    neg, pos = labelled.weights
    assert neg * counts[0] == pytest.approx(pos * counts[1])  # both count the same
    assert neg * counts[0] + pos * counts[1] == pytest.approx(counts.sum())


def _any_run(folder):
    run_weft(*classifier_command("even.csv", "any", 1), cwd=folder)
    return folder / "any"


def test_the_held_out_part_has_every_class_and_no_text_twice(tmp_path):
    rows = make_reviews(60)
    rows += [(f"  {t.upper()} ", label) for t, label in rows[:40]]  # the same texts, written otherwise
    rows += [(t, "rare") for t, _ in make_reviews(4, seed=9)]
    write_table(tmp_path / "t.csv", ("text", "label"), rows)
    tables = read_tables(TableConfig(train=(str(tmp_path / "t.csv"),), validation_share=0.2))
    known, judged = set(tables.train.keys()), set(tables.validation.keys())
    assert not known & judged and len(known | judged) == 64
    assert set(tables.validation.labels) == set(tables.train.labels) == {"neg", "pos", "rare"}
    assert abs(len(tables.validation) / len(rows) - 0.2) < 0.05
    assert tables.validation.labels.count("rare") == 1
    plain = {" ".join(t.lower().split()) for t in tables.train.texts}  # recomputed, without the hashes
    assert not plain & {" ".join(t.lower().split()) for t in tables.validation.texts}
    assert any("stand there before" in warning for warning in tables.warnings)


def test_leaks_into_the_test_are_told(tmp_path):
    write_reviews(tmp_path / "train.csv", 40)
    write_reviews(tmp_path / "dev.csv", 10, seed=5)
    write_table(tmp_path / "test.csv", ("text", "label"), [*make_reviews(40)[:10], *make_reviews(10, seed=4)])
    parts = ["--validation", "dev.csv", "--test", "test.csv"]
    result = run_weft(*classifier_command("train.csv", "none", 1, *parts, "--dry-run"), cwd=tmp_path)
    assert "of dev.csv also" not in result.stderr
    assert "50.0% of test.csv also stand in train.csv" in " ".join(result.stderr.split())


def test_a_dry_run_writes_nothing(tmp_path):
    write_reviews(tmp_path / "t.csv", 40)
    plan = plan_of(tmp_path, "t.csv")
    assert plan["parameters"] > 0 and plan["memory"] > 0 and plan["steps"] == 3
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
    by_epochs = classifier_command("t.csv", "none", 3, "--dry-run", "--json", "--epochs", "4")
    at = by_epochs.index("--steps")
    plan = json.loads(run_weft(*by_epochs[:at], *by_epochs[at + 2 :], cwd=tmp_path).stdout.splitlines()[-1])
    assert plan["steps"] == 9 and plan["epochs"] == 4  # 36 rows in batches of 16


def test_the_demo_has_a_test_of_its_own():
    tables = read_tables(TableConfig(train=("demo",)))
    assert tables.test is not None and len(tables.test) > 0 and tables.labels.kind == "single"
    assert not set(tables.train.keys()) & set(tables.validation.keys())


def test_long_texts_are_cut_told_and_judged_as_they_were_learned(tmp_path, monkeypatch):
    """The number of tokens that are read is recorded: what a later default would be does not matter."""
    write_reviews(tmp_path / "t.csv", 40)
    monkeypatch.setattr("weft.tasks.classify.task.Classify.longest", 5)
    result = run_weft(*classifier_command("t.csv", "run", 12, "--json"), cwd=tmp_path)
    assert "have more than 5 tokens and are cut" in " ".join(result.stderr.split())
    assert config_of(tmp_path / "run")["data"]["length"] == 5
    monkeypatch.undo()
    run = package.load(tmp_path / "run")
    assert Classifier(run).length == 5
    assert _in(tmp_path, run.evaluate)["loss"] == pytest.approx(read_last_event(result)["validation_loss"], abs=1e-6)
    assert run.classify("the film of it fine") == run.classify("the film of it dull")  # it reads three words


# -- from another model -----------------------------------------------------------------------

SAVING = ["training.checkpoint_every=2", "training.keep=9", "training.evaluate_every=3"]
FURTHER = ["--threads", "1", *set_flags("training.batch=8", *SAVING)]


def from_fill(desk, out, *more):
    words = ["train", "classify", str(desk.path / "single.csv"), "--from", str(desk.run("masked")), "--out", str(out)]
    return [*words, "--steps", "3", *FURTHER, *more]


def test_it_begins_with_the_trunk_of_a_run_that_fills(desk, tmp_path):
    run_weft(*from_fill(desk, tmp_path / "run"), cwd=desk.path)
    before = read_tensors(desk.run("masked") / "model.safetensors")
    start, later = (
        read_tensors(tmp_path / "run" / "checkpoints" / step / "model.safetensors") for step in ("step-0", "step-2")
    )
    trunk = {name for name in before if not name.startswith(("masked.", "pooler.", "pairs.", "classes."))}
    assert len(trunk) > 8 and all(torch.equal(before[name], start[name]) for name in trunk)
    assert {name.partition(".")[0] for name in set(start) - trunk} - {"pooler"} == {"classes"}  # a head of its own
    assert set(before) - trunk and not (set(before) - trunk) & set(start)
    assert any(not torch.equal(start[name], later[name]) for name in trunk)
    config = config_of(tmp_path / "run")
    assert config["start"] == str(desk.run("masked")) and config["tokenizer"] is None
    tokens = [(path / "tokenizer.json").read_text() for path in (tmp_path / "run", desk.run("masked"))]
    assert tokens[0] == tokens[1]


@pytest.mark.parametrize(
    ("what", "kept"), [("embeddings", ("tokens.", "segments.")), ("1", ("tokens.", "segments.", "layers.0."))]
)
def test_frozen_parts_keep_their_weights(desk, tmp_path, what, kept):
    words = [*from_fill(desk, tmp_path / "run", "--freeze", what)]
    words[2] = str(desk.path / "pairs.csv")  # with both segments
    run_weft(*words, cwd=desk.path)
    before, after = (read_tensors(path / "model.safetensors") for path in (desk.run("masked"), tmp_path / "run"))
    shared = set(before) & set(after)
    same = {name for name in shared if torch.equal(before[name], after[name])}
    assert same == {name for name in shared if name.startswith(kept)} and "norm.weight" not in same


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--set", "model.width=32"], 1, "do not fit the settings"),
        (["--set", "model.depth=2"], 1, "do not fit the settings"),
        (["--tokenizer", "bpe"], 2, "come with the weights"),
        (["--model", "bert-tiny"], 2, "come with the weights"),
        (["--freeze", "9"], 2, "at most 1"),
    ],
)
def test_what_does_not_fit_is_refused_in_words(desk, tmp_path, words, code, said):
    result = run_weft(*from_fill(desk, tmp_path / "run", *words), cwd=desk.path, check=False)
    assert result.returncode == code and said in result.stderr
    assert len(read_error_lines(result)) <= 3 and not (tmp_path / "run").exists()


def test_other_classes_begin_with_another_head(desk, tmp_path):
    """The same number of classes with other names: their scores mean something else."""
    rows = [(t, {"pos": "yes", "neg": "no"}[label]) for t, label in make_reviews(40)]
    write_table(tmp_path / "t.csv", ("text", "label"), rows)
    words = ["train", "classify", "t.csv", "--from", str(desk.run("single")), "--out", "run", "--steps", "1", *FURTHER]
    run_weft(*words, cwd=tmp_path)
    start = read_tensors(tmp_path / "run" / "checkpoints" / "step-0" / "model.safetensors")
    before = read_tensors(desk.run("single") / "model.safetensors")
    assert not torch.equal(start["classes.1.weight"], before["classes.1.weight"])
    assert torch.equal(start["tokens.weight"], before["tokens.weight"])
    write_reviews(tmp_path / "same.csv", 40)  # a negative control: for the same classes it stays
    words[2], words[6] = "same.csv", "again"
    run_weft(*words, cwd=tmp_path)
    start = read_tensors(tmp_path / "again" / "checkpoints" / "step-0" / "model.safetensors")
    assert torch.allclose(start["classes.1.weight"] * temperature_of(desk.run("single")), before["classes.1.weight"])


# -- stopped and gone on with -----------------------------------------------------------------

STEPS = 26


def words_for(out):
    parts = ["--validation", "dev.csv", "--test", "test.csv"]
    return classifier_command("train.csv", str(out), STEPS, *parts, "--threads", "1", *set_flags(*SAVE_OFTEN))


def everything(run):
    """All that an interrupted run must have in common with one that was left alone."""
    return hash_run(run) | {name: (run / name).read_text() for name in ("calibration.json", "test.json")}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """36 rows to learn from in batches of 16: epochs end within steps 3, 5 and 7, and with step 9."""
    folder = tmp_path_factory.mktemp("resume")
    write_reviews(folder / "train.csv", 36)
    write_reviews(folder / "test.csv", 10, seed=6)
    rows = make_reviews(30, seed=5)
    rows[::5] = [(text, "pos" if label == "neg" else "neg") for text, label in rows[::5]]  # nobody gets these right
    write_table(folder / "dev.csv", ("text", "label"), rows)
    run_weft(*words_for("alone"), cwd=folder)
    return folder


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(undisturbed):
    run_weft(*words_for("twin"), cwd=undisturbed)
    assert everything(undisturbed / "twin") == everything(undisturbed / "alone")
    run_weft(*words_for("other"), "--seed", "1", cwd=undisturbed)
    assert hash_run(undisturbed / "other")["model.safetensors"] != hash_run(undisturbed / "alone")["model.safetensors"]


POINTS = {
    "after step 2": (Trainer, "_step", 2, True),
    "after step 9, at the end of an epoch": (Trainer, "_step", 9, True),
    "in an evaluation": (evaluator.Evaluator, "measure", 2, True),
    "in a save": (checkpoint, "save_file", 4, True),
    "before the temperature is fitted": (evaluator.Evaluator, "fit_temperature", 1, False),
    "before the test": (Trainer, "load_best", 1, False),
}


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_changes_nothing(undisturbed, point):
    out = undisturbed / point.replace(" ", "-").replace(",", "")
    run_until_crash(POINTS[point], *words_for(out), cwd=undisturbed)
    assert not (out / "test.json").exists()
    run_weft("resume", str(out), cwd=undisturbed)
    assert everything(out) == everything(undisturbed / "alone")
    assert [line["step"] for line in read_metrics(out)] == list(range(1, STEPS + 1))


def test_negative_control_another_order_gives_other_bytes(undisturbed, monkeypatch):
    """A resume that reads the table from its beginning again is noticed."""
    run_until_crash((Trainer, "_step", 9, True), *words_for("shifted"), cwd=undisturbed)
    monkeypatch.setattr("weft.tasks.encoder_task.ByLength.__getitem__", lambda self, numbers: numbers % self.per_epoch)
    run_weft("resume", "shifted", cwd=undisturbed)
    assert everything(undisturbed / "shifted") != everything(undisturbed / "alone")


def test_kill_9_in_an_evaluation(undisturbed):
    run_until_killed("judge", 2, *words_for("killed"), cwd=undisturbed)
    run_weft_process("resume", "killed", cwd=undisturbed)
    run_weft_process(
        *words_for("apart"), cwd=undisturbed
    )  # in a process of its own too: others may have changed how ours rounds
    assert everything(undisturbed / "killed") == everything(undisturbed / "apart")


def copied(undisturbed, folder):
    for table in undisturbed.glob("*.csv"):
        shutil.copy(table, folder)
    shutil.copytree(undisturbed / "alone", folder / "run")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("train.csv", "train.csv have changed since this run began: 36 rows to learn from then, 46 now"),
        ("dev.csv", "dev.csv have changed since this run began"),
        ("test.csv", "test.csv have changed since this run began"),
    ],
)
def test_a_changed_table_is_refused(undisturbed, tmp_path, name, said):
    copied(undisturbed, tmp_path)
    with (tmp_path / name).open("a") as file:
        file.writelines(f"{t},{label}\n" for t, label in make_reviews(10, seed=11))
    result = run_weft("resume", "run", "--steps", "2", cwd=tmp_path, check=False)
    assert result.returncode == 1 and said in result.stderr
    assert len(read_error_lines(result)) <= 3


def test_one_changed_label_is_noticed(undisturbed, tmp_path):
    copied(undisturbed, tmp_path)
    train = tmp_path / "train.csv"
    train.write_text(train.read_text().replace(",pos\n", ",neg\n", 1))
    result = run_weft("resume", "run", "--steps", "2", cwd=tmp_path, check=False)
    assert result.returncode == 1 and "have changed" in result.stderr


def test_a_finished_run_can_be_trained_further(undisturbed, tmp_path):
    copied(undisturbed, tmp_path)
    event = read_last_event(run_weft("resume", "run", "--epochs", "2", "--json", cwd=tmp_path))
    assert event["steps"] == STEPS + 4  # 2 · 36 / 16, rounded
    assert [line["step"] for line in read_metrics(tmp_path / "run")] == list(range(1, STEPS + 5))


# -- probabilities ----------------------------------------------------------------------------


def with_temperature(undisturbed, path, value):
    shutil.copytree(undisturbed / "alone", path)
    (path / "calibration.json").write_text(json.dumps({"temperature": value}))
    return path


def test_probabilities_are_those_of_the_logits_divided_by_the_temperature(undisturbed, tmp_path):
    fitted = temperature_of(undisturbed / "alone")
    assert fitted != 1.0 and 0.05 <= fitted <= 20
    texts, first = ["a lovely film", "the grim story of it", ""], []
    for value, path in ((fitted, undisturbed / "alone"), (2.5, with_temperature(undisturbed, tmp_path / "hot", 2.5))):
        run = package.load(path)
        wanted = (learned_logits(run, texts) / value).softmax(-1).numpy()
        for answer, row in zip(run.classify(texts), wanted, strict=True):
            assert [answer.probabilities[name] for name in ("neg", "pos")] == pytest.approx(row.tolist(), abs=1e-6)
            assert answer.probability == max(answer.probabilities.values())
            assert sum(answer.probabilities.values()) == pytest.approx(1)
            assert answer.label == ("neg", "pos")[int(row.argmax())]
        first.append(wanted[0, 0])
    assert abs(first[0] - first[1]) > 1e-4  # a negative control: it is used


def test_the_temperature_is_the_best_for_what_was_held_out(undisturbed):
    run = package.load(undisturbed / "alone")
    validation = _in(undisturbed, lambda: read_tables(run.config.data)).validation
    logits, fitted = learned_logits(run, validation.texts), temperature_of(undisturbed / "alone")
    truth = torch.tensor([("neg", "pos").index(label) for label in validation.labels])
    losses = [float(torch.nn.functional.cross_entropy(logits / (fitted * by), truth)) for by in (1, 0.8, 1.25)]
    assert losses[0] < min(losses[1:])
    assert losses[0] == pytest.approx(
        min(line.get("validation_loss", 9) for line in read_metrics(undisturbed / "alone"))
    )


@pytest.mark.parametrize("value", ["warm", 0, -1, 1e9, None, [1], True])
def test_a_temperature_that_is_none_is_refused(undisturbed, tmp_path, value):
    run = package.load(with_temperature(undisturbed, tmp_path / "run", value))
    with pytest.raises(package.WeftError, match=r"temperature = .*\nexpected a number above 0"):
        run.classify("a film")


# -- Python -----------------------------------------------------------------------------------


def test_python_trains_on_tuples(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    changes = dict(change.split("=") for change in TINY_READER) | {"training.evaluate_every": 10}
    run = package.train(make_reviews(60), task="classify", steps=30, threads=1, out=str(tmp_path / "run"), set=changes)
    assert run.task == "classify" and run.evaluate()["accuracy"] == 1.0
    assert [answer.label for answer in run.classify(["a lovely warm film", "a grim cold film"])] == ["pos", "neg"]
    assert run.classify("a lovely warm film") == run.classify(["a lovely warm film"])[0]
    assert run.classify([]) == []
    with pytest.raises(package.WeftError, match="one text at a time"):
        run.classify([("a", "b")])
    with pytest.raises(package.WeftError, match="a tuple of 1"):
        package.train([("alone",)], task="classify", steps=1)
