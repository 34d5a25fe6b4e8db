"""`weft train tag`: what it learns, how it is judged, and that a run that was stopped ends with the same bytes."""

import json
import shutil

import pytest
import torch

import weft as package
from fixtures.commands import (
    SAVE_OFTEN,
    filler_command,
    read_error_lines,
    read_last_event,
    run_until_crash,
    run_weft,
    set_flags,
)
from fixtures.runs import hash_run, read_metrics
from fixtures.texts import write_book
from tag.tagged_files import tagger_command, write_conll
from weft.checkpoints import checkpoint
from weft.checkpoints.files import read_tensors
from weft.tasks.tag import task as tagging
from weft.tasks.tag.words import TagWords
from weft.tasks.task import task_of
from weft.training.trainer import Trainer

KEYS = ("f1", "precision", "recall", "accuracy")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of both kinds of tags, and the last event of a run on each."""
    path = tmp_path_factory.mktemp("tag")
    for name, part, count in (("train", "train", 400), ("dev", "validation", 80), ("test", "test", 80)):
        write_conll(path / f"{name}.conll", part, count)
        write_conll(path / f"{name}-forms.conll", part, count, plain=True)
    parts = ["--validation", "dev.conll", "--test", "test.conll"]
    result = run_weft(*tagger_command("train.conll", "run", 120, *parts, "--json"), cwd=path)
    (path / "done.json").write_text(json.dumps(read_last_event(result)))
    return path


def last(folder):
    return json.loads((folder / "done.json").read_text())


# -- learning ---------------------------------------------------------------------------------


def test_entities_are_found_far_better_than_by_the_words_alone(folder):
    found = last(folder)
    assert found["measured_on"] == "test" and all(0 <= found[key] <= 1 for key in KEYS)
    assert found["f1"] > 0.35 > 0.25 > found["simplest_f1"]
    assert set(found["classes"]) == {"PER", "LOC", "ORG", "DATE"}
    assert sum(kind["examples"] for kind in found["classes"].values()) > 100
    config = json.loads((folder / "run" / "config.json").read_text())
    assert config["task"] == "tag" and config["model"]["head"]["labels"][:3] == ["O", "B-DATE", "I-DATE"]
    assert not config["tokenizer"]["lowercase"]


def test_the_weights_with_the_best_f1_are_kept(folder):
    lines = [line for line in read_metrics(folder / "run") if "f1" in line]
    best = max(lines, key=lambda line: (line["f1"], -line["validation_loss"]))
    assert json.loads((folder / "run" / "test.json").read_text())["step"] == best["step"]
    assert last(folder)["validation_loss"] == best["validation_loss"]


def test_negative_control_shuffled_tags_are_not_learned(folder, tmp_path):
    """Tags of other sentences: the result says that the simplest answer is as good."""
    lines = (folder / "train.conll").read_text().split("\n")
    tags = [line.split("\t")[1] for line in lines if line]
    tags = iter(tags[len(tags) // 2 :] + tags[: len(tags) // 2])
    text = "\n".join(f"{line.split(chr(9))[0]}\t{next(tags)}" if line else "" for line in lines)
    (tmp_path / "train.conll").write_text(text)
    words = tagger_command("train.conll", "run", 20, "--validation", str(folder / "dev.conll"))
    result = run_weft(*words, cwd=tmp_path)
    assert "no better than the simplest answer" in result.stderr


def test_plain_tags_are_judged_by_words(folder, monkeypatch):
    monkeypatch.chdir(folder)
    words = tagger_command("train-forms.conll", "forms", 60, "--validation", "dev-forms.conll", "--json")
    found = read_last_event(run_weft(*words, cwd=folder))
    assert "f1" not in found and found["accuracy"] > 0.9 and found["macro_f1"] > 0.8
    assert package.load(folder / "forms").evaluate()["accuracy"] == found["accuracy"]
    shown = run_weft("tag", "forms", "Ada left .", cwd=folder).stdout
    assert [line.split()[0] for line in shown.splitlines()] == ["NAME", "WORD", "SIGN"]


def test_without_a_validation_file_a_part_is_held_out(folder):
    result = run_weft(*tagger_command("train.conll", "none", 1, "--dry-run", "--json"), cwd=folder)
    plan = json.loads(result.stdout.splitlines()[-1])
    assert plan["sentences"] + plan["validation_sentences"] == 400 and 30 <= plan["validation_sentences"] <= 50
    assert plan["kinds"] == ["PER", "LOC", "ORG", "DATE"] and 0 < plan["validation_simplest_f1"] < 0.5


def test_evaluate_says_what_the_last_event_said(folder, monkeypatch):
    monkeypatch.chdir(folder)
    found, event = package.load(folder / "run").evaluate(), last(folder)
    assert {key: found[key] for key in (*KEYS, "simplest_f1", "classes")} == {
        key: event[key] for key in (*KEYS, "simplest_f1", "classes")
    }
    assert found["loss"] == pytest.approx(event["test_loss"], abs=1e-9) and found["sentences"] == 80
    other = json.loads(run_weft("evaluate", "run", "dev.conll", "--json", cwd=folder).stdout)
    assert other["measured_on"] == "data" and other["f1"] != found["f1"]
    said = run_weft("evaluate", "run", cwd=folder).stdout
    assert f"F1 {event['f1']:.4f}" in said and "most frequent tag" in said and "PER" in said


def test_evaluating_tags_of_the_other_kind_is_refused(folder):
    result = run_weft("evaluate", "run", "dev-forms.conll", cwd=folder, check=False)
    assert result.returncode == 1 and "has plain tags" in result.stderr and "knows entities" in result.stderr


def test_the_result_is_told_with_the_simplest_answer():
    found = {"f1": 0.9, "precision": 0.9, "recall": 0.9, "accuracy": 0.99, "simplest_f1": 0.2, "measured_on": "test"}
    assert TagWords().result(0.1, found).endswith("sentences (each word's most frequent tag reaches 0.2000)")
    assert "no better" in TagWords().result(0.1, found | {"f1": 0.2})


# -- which data mean it -----------------------------------------------------------------------


def test_tagged_files_are_recognised(folder, tmp_path):
    for name in ("a.conll", "b.conllu", "c.iob", "d.bio", "e.CONLL.gz"):
        assert task_of([name]) == "tag"
    (tmp_path / "rows.jsonl").write_text('{"tokens": ["Ada", "left"], "tags": ["B-PER", "O"]}\n' * 3)
    assert task_of([str(tmp_path / "rows.jsonl")]) == "tag"
    shutil.copy(folder / "train.conll", tmp_path / "plain.txt")
    assert task_of([str(tmp_path / "plain.txt")]) == "generate" == task_of(["demo"])
    (tmp_path / "several.jsonl").write_text('{"text": "a fine film", "labels": ["good", "old"]}\n' * 3)
    assert task_of([str(tmp_path / "several.jsonl")]) == "classify"
    result = run_weft("train", "dev.conll", "--dry-run", "--json", "--steps", "1", cwd=folder)
    assert json.loads(result.stdout.splitlines()[-1])["task"] == "tag"


def test_tuples_of_words_and_tags_work_in_python(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    places = ("Rome", "Oslo", "Bern", "Lyon", "Ulm", "Bonn")
    rows = [(["Ada", "left", name], ["B-PER", "O", "B-LOC"]) for name in places]
    run = package.train(rows * 4, task="tag", steps=2, out=str(tmp_path / "run"), threads=1, set={"model.width": 16})
    assert [word.text for word in run.tag("Ada left Rome").words] == ["Ada", "left", "Rome"]
    assert run.model_config.head.labels == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--pair", "x"], "no such option"),
        (["--model", "gpt"], "not for tag"),
        (["--set", "data.sentences=3"], "found out from the data"),
        (["--label", "9"], "has no column '9'"),
        (["--validation", "dev-forms.conll"], "has plain tags"),
    ],
)
def test_what_cannot_be_is_refused_in_words(folder, words, said):
    result = run_weft(*tagger_command("train.conll", "refused", 1, *words), cwd=folder, check=False)
    assert result.returncode in (1, 2) and said in result.stderr
    assert len(read_error_lines(result)) <= 3 and not (folder / "refused").exists()


# -- begun from another model -----------------------------------------------------------------


def test_it_begins_from_a_run_that_fills_in(folder):
    write_book(folder / "book.txt")
    run_weft(*filler_command("book.txt", "words", 5), cwd=folder)
    more = ["--from", "words", "--out", "further", "--steps", "2", "--threads", "1"]
    run_weft("train", "tag", "train.conll", "--validation", "dev.conll", *more, cwd=folder)
    start = read_tensors(folder / "further" / "checkpoints" / "step-0" / "model.safetensors")
    before = read_tensors(folder / "words" / "model.safetensors")
    assert torch.equal(start["tokens.weight"], before["tokens.weight"]) and "labels.1.weight" in start


def test_other_labels_begin_with_another_head(folder, tmp_path):
    """As many labels with other names: what was learned of the old ones means nothing."""
    text = (folder / "dev.conll").read_text()
    (tmp_path / "same.conll").write_text(text)
    (tmp_path / "other.conll").write_text(text.replace("-PER", "-XYZ"))
    before = read_tensors(folder / "run" / "model.safetensors")
    kept = {}
    for name in ("same", "other"):
        words = ["train", "tag", f"{name}.conll", "--from", str(folder / "run"), "--out", name, "--steps", "1"]
        run_weft(*words, "--threads", "1", cwd=tmp_path)
        start = read_tensors(tmp_path / name / "checkpoints" / "step-0" / "model.safetensors")
        kept[name] = torch.equal(start["labels.1.weight"], before["labels.1.weight"])
    assert kept == {"same": True, "other": False}


def test_a_model_that_writes_is_no_place_to_begin(folder, desk):
    result = run_weft(
        "train", "tag", "train.conll", "--from", str(desk.run("writer")), "--steps", "1", cwd=folder, check=False
    )
    assert result.returncode == 1 and "does not read in both directions" in result.stderr


# -- stopped and gone on with -----------------------------------------------------------------

STEPS = 12


def words_for(out):
    parts = ["--validation", "dev.conll", "--test", "test.conll"]
    return tagger_command("train.conll", out, STEPS, *parts, *set_flags(*SAVE_OFTEN))


def everything(run):
    return hash_run(run) | {"test.json": (run / "test.json").read_text()}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """36 sentences in batches of 16: epochs end within steps."""
    path = tmp_path_factory.mktemp("resume")
    for name, part, count in (("train", "train", 36), ("dev", "validation", 12), ("test", "test", 12)):
        write_conll(path / f"{name}.conll", part, count)
    run_weft(*words_for("alone"), cwd=path)
    return path


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(undisturbed):
    run_weft(*words_for("twin"), cwd=undisturbed)
    assert everything(undisturbed / "twin") == everything(undisturbed / "alone")
    run_weft(*words_for("other"), "--seed", "1", cwd=undisturbed)
    assert hash_run(undisturbed / "other")["model.safetensors"] != hash_run(undisturbed / "alone")["model.safetensors"]


POINTS = {
    "after step 2": (Trainer, "_step", 2, True),
    "after step 9": (Trainer, "_step", 9, True),
    "in an evaluation": (tagging, "measured", 1, True),
    "in a save": (checkpoint, "save_file", 4, True),
    "before the test": (Trainer, "load_best", 1, False),
}


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_changes_nothing(undisturbed, point):
    out = undisturbed / point.replace(" ", "-")
    run_until_crash(POINTS[point], *words_for(out), cwd=undisturbed)
    assert not (out / "test.json").exists()
    run_weft("resume", str(out), cwd=undisturbed)
    assert everything(out) == everything(undisturbed / "alone")


def test_negative_control_another_order_gives_other_bytes(undisturbed, monkeypatch):
    run_until_crash((Trainer, "_step", 9, True), *words_for("shifted"), cwd=undisturbed)
    monkeypatch.setattr("weft.tasks.encoder_task.ByLength.__getitem__", lambda self, numbers: numbers % self.per_epoch)
    run_weft("resume", "shifted", cwd=undisturbed)
    assert everything(undisturbed / "shifted") != everything(undisturbed / "alone")


@pytest.mark.parametrize("name", ["train", "dev", "test"])
def test_a_changed_file_is_refused(undisturbed, tmp_path, name):
    for file in undisturbed.glob("*.conll"):
        shutil.copy(file, tmp_path)
    shutil.copytree(undisturbed / "alone", tmp_path / "run")
    file = tmp_path / f"{name}.conll"
    file.write_text(file.read_text().replace("B-PER", "B-LOC", 1))
    result = run_weft("resume", "run", "--steps", "2", cwd=tmp_path, check=False)
    assert result.returncode == 1 and f"{name}.conll have changed since this run began" in result.stderr
