"""What every task is held to, whoever wrote it: its description, its plan, a run of it, and what comes after.

`DESCRIBED` look at the description alone, `TRAINED` at a run that `words` train in a second: they are given the
description, these words without `--out`, and an empty folder that holds the data.
"""

import json

import pytest

import weft
from fixtures.commands import read_last_event, run_until_crash, run_weft
from fixtures.runs import hash_run
from weft.errors import WeftError
from weft.models import ModelConfig
from weft.models.capabilities import DOES
from weft.tasks import Run
from weft.tasks.task import find_task, find_use, read_settings
from weft.training import Trainer

STEPS = ["--steps", "6", "--set", "training.checkpoint_every=2", "--set", "training.evaluate_every=3"]


# -- the description --------------------------------------------------------------------------


def words_are_complete(task):
    words = task.words
    assert all([words.does, words.unit, words.read, words.speed, words.matter, *words.learned])
    assert words.uses and all(use.name and use.what and use.tag for use in words.uses.values())
    assert all("{path}" in use.first and use.first.startswith("weft ") for use in words.uses.values())
    assert set(words.uses) <= {capability.__name__ for capability in DOES}


def models_can_do_it(task):
    assert task.family in task.families and set(task.families) <= set(ModelConfig.registry)
    assert find_task(task.name, task.family).name == task.name
    assert all(task.capability(family) in task.capabilities for family in task.families)


def settings_are_there(task):
    fields = task.settings.__dataclass_fields__
    assert {"model", "tokenizer", "data", "training", "start"} <= set(fields)
    assert (task.objective is None) == ("objective" not in fields)
    assert issubclass(task.opens, Run) and task.opens is not Run and task.opens.__doc__


DESCRIBED = {check.__name__: check for check in (words_are_complete, models_can_do_it, settings_are_there)}


# -- a run of it ------------------------------------------------------------------------------


def a_dry_run_says_the_plan_and_writes_nothing(task, words, folder):
    before = sorted(folder.iterdir())
    events = [json.loads(line) for line in run_weft(*words, "--dry-run", "--json", cwd=folder).stdout.splitlines()]
    assert sorted(folder.iterdir()) == before
    assert events[-1]["event"] == "plan" and events[-1]["task"] == task.name and events[-1]["model"] in task.families
    assert all(line.strip() for line in task.words.plan({"minutes": None, **events[-1]}))


def a_run_says_what_it_is_and_how_good(task, words, folder):
    last = read_last_event(run_weft(*words, "--out", "run", *STEPS, "--json", cwd=folder))
    config, run = json.loads((folder / "run" / "config.json").read_text()), weft.load(folder / "run")
    assert last["event"] == "done" and last["steps"] == 6 and config["task"] == task.name
    assert type(run) is task.opens_as(run.model_config) and run.task == task.name
    told = [last[name] for name in task.words.matter if last.get(name) is not None]
    assert not told or any(f"{value:.4f}" in repr(run) or f"{value:.2f}" in repr(run) for value in told)
    assert told or not any(name in last for name in task.words.matter)
    settings = {key: value for key, value in config.items() if key not in ("task", "format", "plugins")}
    assert read_settings(settings | {"task": task.name}, "run").to_dict() == settings
    first = find_use(run.model_config, task.name)[1].first.format(path="run")
    assert first in (folder / "run" / "README.md").read_text()
    page = (folder / "run" / "report.html").read_text()
    assert task.name in page


def evaluating_gives_what_training_measured(task, words, folder):
    last = read_last_event(run_weft(*words, "--out", "run", *STEPS, "--json", cwd=folder))
    found = json.loads(run_weft("evaluate", "run", "--json", cwd=folder).stdout)
    assert found["measured_on"] == last["measured_on"]
    same = [name for name in task.words.matter if isinstance(last.get(name), float)]
    assert same and all(found[name] == pytest.approx(last[name], abs=1e-5) for name in same)


def interrupted_is_uninterrupted(task, words, folder):
    run_weft(*words, "--out", "whole", *STEPS, cwd=folder)
    run_until_crash((Trainer, "_save", 2, True), *words, "--out", "torn", *STEPS, cwd=folder)
    run_weft("resume", "torn", cwd=folder)
    assert hash_run(folder / "torn") == hash_run(folder / "whole")


def other_data_are_refused(task, words, folder):
    run_weft(*words, "--out", "run", *STEPS, cwd=folder)
    for path in folder.glob("data*"):
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join([*lines, *lines[-6:]]))
    told = run_weft("resume", "run", "--steps", "2", cwd=folder, check=False)
    assert told.returncode == 1 and "changed since" in told.stderr


def answers_do_not_depend_on_each_other(task, words, folder):
    """One for each text, in order; that of a text alone and of a text among others are the same."""
    run_weft(*words, "--out", "run", *STEPS, cwd=folder)
    run, texts = weft.load(folder / "run"), ["the cat sat", "a", "", "the dog ran on and on under the old tree"]
    try:
        found = task.predict(run, texts)
    except WeftError:
        assert task.__module__.startswith("weft."), "a task of a plugin answers texts"
        return
    assert found == [task.predict(run, [text])[0] for text in texts] and json.dumps(found)
    typed = run_weft(task.name, "run", *texts[:2], "--json", cwd=folder).stdout.splitlines()
    assert [json.loads(line) for line in typed] == found[:2]


def it_can_be_looked_into_and_compared(task, words, folder):
    run_weft(*words, "--out", "run", *STEPS, cwd=folder)
    told = json.loads(run_weft("inspect", "run", "--json", cwd=folder).stdout)
    assert told["parameters"]["total"] == sum(p.numel() for p in weft.load(folder / "run").model.parameters())
    run_weft("compare", *words[1:], "--vary", "training.clip=1,2", "--steps", "2", "--dry-run", cwd=folder)


TRAINED = {
    check.__name__: check
    for check in (
        a_dry_run_says_the_plan_and_writes_nothing,
        a_run_says_what_it_is_and_how_good,
        evaluating_gives_what_training_measured,
        interrupted_is_uninterrupted,
        other_data_are_refused,
        answers_do_not_depend_on_each_other,
        it_can_be_looked_into_and_compared,
    )
}
