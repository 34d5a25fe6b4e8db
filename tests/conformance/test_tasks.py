"""Every task, against the whole list of checks.

A task from elsewhere is found too, and trained on `demo` or on the data that WEFT_TASK_DATA names:
WEFT_PLUGINS=restore.py WEFT_TASK_DATA=book.txt python -m pytest tests/conformance/test_tasks.py
"""

import os
import shutil
from pathlib import Path

import pytest

from conformance import task_checks
from fixtures.commands import TINY_GPT, TINY_READER, run_weft, set_flags
from fixtures.plugins import GUIDES, restore_registries, write_plugins
from fixtures.tables import write_reviews, write_translation_table
from fixtures.texts import make_text, write_book
from weft.plugins import load_all, load_plugin
from weft.tasks.names import REGISTERED, task_folders
from weft.tasks.task import find_task, variants

load_all()

TAGGED = "".join(f"Ada\tB-PER\nLovelace\tI-PER\nsaw\tO\nthe\tO\n{place}\tB-LOC\n\n" for place in ["Rome", "Oslo"] * 20)
WORDS = {  # what trains a run in a second, on a file called data.…
    "generate": ["data.txt", "--tokenizer", "characters", *set_flags(*TINY_GPT)],
    "fill": ["data.txt", *set_flags(*TINY_READER)],
    "classify": ["data.csv", *set_flags(*TINY_READER)],
    "translate": ["data.tsv", *set_flags("model.width=16", "model.depth=1", "model.attention.heads=2")],
    "embed": ["data.txt", *set_flags("model.width=16", "model.window=1")],
    "tag": ["data.conll", *set_flags(*TINY_READER)],
}
DESCRIBED = [
    pytest.param(task, name, id=f"{type(task).__name__}: {name}")
    for kind in task_folders()
    for task in variants(kind)
    for name in task_checks.DESCRIBED
]
APART = {
    ("embed", "interrupted_is_uninterrupted"): "word vectors are saved by other workers: tests/training/test_embed.py",
    ("embed", "evaluating_gives_what_training_measured"): "the vectors of a short run have no metric",
    ("translate", "evaluating_gives_what_training_measured"): "training translates greedily, evaluate by beam search",
}


def words_for(name, folder):
    """The words that train the task, with its data in the folder."""
    if name in REGISTERED and name not in WORDS:
        data = os.environ.get("WEFT_TASK_DATA")
        if data is None:
            return ["train", name, "demo", "--threads", "1"]
        kept = folder / f"data{Path(data).suffix}"
        shutil.copy(data, kept)
        return ["train", name, kept.name, "--threads", "1"]
    write_reviews(folder / "data.csv")
    write_translation_table(folder / "data.tsv", 64)
    (folder / "data.conll").write_text(TAGGED)
    write_book(folder / "data.txt") if name == "fill" else (folder / "data.txt").write_text(make_text(4000))
    for other in folder.glob("data*"):
        if other.name != WORDS[name][0]:
            other.unlink()
    return ["train", name, *WORDS[name], "--threads", "1"]


@pytest.mark.parametrize(("task", "name"), DESCRIBED)
def test_a_task_says_everything_about_itself(task, name):
    task_checks.DESCRIBED[name](task)


def test_every_task_has_words_to_train_it():
    assert set(WORDS) == set(task_folders())


@pytest.mark.slow
@pytest.mark.parametrize("name", task_checks.TRAINED)
@pytest.mark.parametrize("kind", WORDS)
def test_a_run_of_a_task(kind, name, tmp_path):
    if (kind, name) in APART:
        pytest.skip(APART[kind, name])
    task_checks.TRAINED[name](find_task(kind), words_for(kind, tmp_path), tmp_path)


ELSEWHERE = [(kind, name) for kind in sorted(REGISTERED) for name in (*task_checks.DESCRIBED, *task_checks.TRAINED)]


@pytest.mark.parametrize(("kind", "name"), ELSEWHERE)
def test_a_task_from_elsewhere(kind, name, tmp_path):
    if name in task_checks.DESCRIBED:
        task_checks.DESCRIBED[name](find_task(kind))
    else:
        task_checks.TRAINED[name](find_task(kind), words_for(kind, tmp_path), tmp_path)


# -- the guide's ------------------------------------------------------------------------------


@pytest.fixture
def restore(tmp_path):
    """The task of docs/guides/add-a-task.md, loaded; a folder with its data."""
    folder = tmp_path / "plugin"
    folder.mkdir()
    write_plugins(GUIDES / "add-a-task.md", folder)
    (tmp_path / "data.txt").write_text(make_text(4000))
    with restore_registries():
        load_plugin(folder / "restore.py")
        yield tmp_path
    assert "restore" not in REGISTERED


RESTORE = ["train", "restore", "data.txt", "--threads", "1", *set_flags(*TINY_READER)]


@pytest.mark.parametrize("name", task_checks.DESCRIBED)
def test_the_guides_task_says_everything_about_itself(restore, name):
    task_checks.DESCRIBED[name](find_task("restore"))


@pytest.mark.parametrize("name", task_checks.TRAINED)
def test_a_run_of_the_guides_task(restore, name):
    task_checks.TRAINED[name](find_task("restore"), RESTORE, restore)


def test_what_the_guides_task_learns(restore):
    """The first word of each line has a capital and the last a full stop: a few hundred steps are enough."""
    run_weft(*RESTORE, "--out", "run", "--steps", "150", cwd=restore)
    told = run_weft(
        "restore", "run", "the dog sat on the mat", "birds sang over hills", cwd=restore
    ).stdout.splitlines()
    assert [line[0].isupper() and line[-1] == "." for line in told] == [True, True]
    assert [line.lower().rstrip(".") for line in told] == ["the dog sat on the mat", "birds sang over hills"]


# -- negative controls ------------------------------------------------------------------------


def test_a_description_that_says_too_little_is_found(restore):
    task = find_task("restore")
    silent = type("Silent", (type(task.words),), {"does": ""})
    for check, broken in [
        ("words_are_complete", {"words": silent()}),
        ("models_can_do_it", {"families": ["bert", "none"]}),
        ("settings_are_there", {"objective": None}),
    ]:
        made = type("Broken", (type(task),), {"__module__": "weft.tasks.broken", **broken})()
        with pytest.raises(AssertionError):
            task_checks.DESCRIBED[check](made)


def other_numbers(self, run, *data, weights):
    return {"accuracy": 0.0, "macro_f1": 0.0, "measured_on": "validation"}


def how_many(self, run, texts):
    return [{"text": str(len(texts))} for _ in texts]


def nothing_to_refuse(self, recorded, found):
    pass


@pytest.mark.parametrize(
    ("check", "method", "broken"),
    [
        ("evaluating_gives_what_training_measured", "evaluate", other_numbers),
        ("answers_do_not_depend_on_each_other", "predict", how_many),
        ("other_data_are_refused", "check_same", nothing_to_refuse),
    ],
)
def test_a_promise_that_is_not_kept_is_found(restore, monkeypatch, check, method, broken):
    task = find_task("restore")
    monkeypatch.setattr(type(task), method, broken)
    with pytest.raises(AssertionError):
        task_checks.TRAINED[check](task, RESTORE, restore)


def test_batches_that_depend_on_what_was_asked_before_are_found(restore, monkeypatch):
    """Resumed, they begin anew."""
    from weft.tasks.encoder_task import ByLength

    asked = []

    def in_turn(self, numbers):
        asked.append(numbers)
        return (numbers + len(asked)) % self.per_epoch

    monkeypatch.setattr(ByLength, "__getitem__", in_turn)
    with pytest.raises(AssertionError):
        task_checks.TRAINED["interrupted_is_uninterrupted"](find_task("restore"), RESTORE, restore)
