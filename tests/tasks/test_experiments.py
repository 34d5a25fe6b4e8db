"""Tasks are folders that describe themselves; an experiment is planned, fitted, reopened and extended."""

from collections import Counter
from pathlib import Path

import pytest
import torch

import weft.tasks
from fixtures.runs import hash_run
from fixtures.texts import make_text
from weft.errors import ConfigError, DataError
from weft.models import ModelConfig
from weft.tasks.experiment import MAIN_MODEL, Experiment
from weft.tasks.names import task_names
from weft.tasks.request import make_request
from weft.tasks.task import find_task, find_use, read_settings, variants

ALL = [task for name in task_names() for task in variants(name)]
SMALL = {"model.width": 16, "model.depth": 1, "model.max_length": 32, "training.batch": 4}


def test_every_folder_with_a_description_is_a_task():
    here = Path(weft.tasks.__file__).parent
    assert set(task_names()) == {path.parent.name for path in here.glob("*/task.py")} != set()
    assert all(task.name == name for name in task_names() for task in variants(name))


@pytest.mark.parametrize("task", ALL, ids=lambda task: type(task).__name__)
def test_a_task_says_everything_about_itself(task):
    words = task.words
    assert words.does and words.unit and words.read and words.speed and words.matter
    assert all("{path}" in use.first for use in words.uses.values())
    assert task.family in task.families and set(task.families) <= set(ModelConfig.registry)
    assert find_task(task.name, task.family) is task


def test_tasks_do_not_get_in_each_others_way():
    for name in task_names():
        found = variants(name)
        assert len({task.capabilities for task in found}) == len(found), "each is for another capability"
    turns = [task.turn for task in ALL if task.turn is not None]
    assert len(turns) == len(set(turns)) > 2
    uses = Counter((task.name, use) for task in ALL for use in task.words.uses)
    owners = {use: {name for name, other in uses if other == use} for _, use in uses}
    assert all(len(names) == 1 for names in owners.values())
    image = ModelConfig.from_config({"kind": "vit", "head": {"classes": 2}})
    assert find_use(image)[0] is find_task("classify", "vit") is not find_task("classify", "bert")


def test_what_does_not_exist_is_refused_by_name():
    with pytest.raises(ConfigError, match="'fil' does not exist yet"):
        find_task("fil")
    with pytest.raises(DataError, match="a task this version does not know: 'sing'"):
        read_settings({"task": "sing"}, "runs/a")


@pytest.fixture
def book(tmp_path, monkeypatch):
    (tmp_path / "book.txt").write_text(make_text(2000))
    monkeypatch.chdir(tmp_path)
    return "book.txt"


def planned(book, out, steps=3, **more):
    options = {"out": out, "steps": steps, "threads": 1, "seed": 1, "tokenizer": "characters"} | more
    return Experiment.plan(make_request([book], options, task="generate", changes=SMALL))


def test_planned_fitted_reopened_extended(book, tmp_path):
    events = []
    request = make_request(
        [book], {"out": "a", "steps": 3, "threads": 1, "tokenizer": "characters"}, task="generate", changes=SMALL
    )
    experiment = Experiment.plan(request, events.append)
    assert not (tmp_path / "a").exists() and events[-1]["event"] == "plan"
    assert list(experiment.models()) == [MAIN_MODEL] and experiment.models()[MAIN_MODEL] is experiment.config.model
    run, outcome = experiment.fit()
    assert run.path.name == "a" and outcome.progress.step == 3
    assert [event["step"] for event in events if event["event"] == "step"] == [1, 2, 3]
    before = hash_run(tmp_path / "a")
    assert Experiment.reopen("a").fit()[1].stopped_by == "finished" and hash_run(tmp_path / "a") == before
    assert Experiment.reopen("a").extend(steps=2).fit()[1].progress.step == 5


def test_a_run_that_is_not_finished_is_not_extended(book):
    planned(book, "a")._begin()
    with pytest.raises(DataError, match="is not finished"):
        Experiment.reopen("a").extend(steps=2)


def test_word_vectors_begin_from_what_was_asked_for_even_after_a_kill(book, tmp_path):
    """Killed before the first checkpoint, a run still begins with the vectors of the other one."""
    changes = {"tokenizer.min_count": 1, "model.width": 8}
    options = {"steps": 2, "threads": 1}
    Experiment.plan(make_request([book], options | {"out": "a"}, task="embed", changes=changes)).fit()
    begun = Experiment.plan(make_request([book], options | {"out": "b", "start": "a"}, task="embed"))
    run = begun._begin()
    torch.manual_seed(0)
    first = begun.initial_model(run).state_dict()
    torch.manual_seed(0)
    again = Experiment.reopen("b").initial_model(run).state_dict()
    torch.manual_seed(0)
    drawn = begun.config.model.build().state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["input.weight"], drawn["input.weight"])
