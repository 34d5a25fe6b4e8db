"""Options of `weft train` and `weft compare`: defined once, met alike by the commands, Python and what is asked for."""

import dataclasses
import inspect
from typing import get_type_hints

import pytest
import typer

import weft
from weft.cli import compare, main, train
from weft.tasks.options import COLUMN_OPTIONS, CompareOptions, Option, TrainOptions, collect_options, flag_of
from weft.tasks.request import Request

OF_THE_COMMAND = {"data", "dry_run", "as_json", "until_eof"}


def defined(kind):
    """The options of a class by name; None where the command says it otherwise."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: next(iter(getattr(hint, "__metadata__", ())), None) for name, hint in hints.items()}


def of_command(verb):
    command = typer.main.get_command(main.app).commands[verb]
    return {param.name: param for param in command.params if param.name != "help"}


@pytest.mark.parametrize(("verb", "kind"), [("train", TrainOptions), ("compare", CompareOptions)])
def test_commands_and_keywords_have_the_same_options(verb, kind):
    known, found = defined(kind), of_command(verb)
    different = compare.DIFFERENT if verb == "compare" else {}
    typed = {name for name, option in known.items() if option is not None and different.get(name, "") is not None}
    assert set(found) - OF_THE_COMMAND == typed and set(known) - typed <= {"task", "watch"}
    assert list(inspect.signature(getattr(weft, verb)).parameters) == ["data", *known]
    for name in typed:
        assert isinstance(known[name], Option) and found[name].opts == [flag_of(name)]
        assert found[name].help == (different.get(name) or known[name].help)
        assert found[name].metavar in (known[name].metavar, None)
    assert set(different) <= set(known)


def test_values_are_what_their_types_say():
    found = get_type_hints(train.train)  # as typer reads them
    kinds = {"minutes": float | None, "steps": int | None, "freeze": str | None, "out": str | None, "watch": bool}
    assert {name: found[name] for name in kinds} == kinds
    assert {name for name, kind in found.items() if kind == list[str] | None} == {"data", "validation", "test", "set"}


def test_a_request_has_every_option():
    fields = {field.name for field in dataclasses.fields(Request)}
    said = dict.fromkeys(defined(TrainOptions), "x") | {"set": {}}
    assert set(collect_options((), said)["options"]) <= fields
    assert set(COLUMN_OPTIONS) <= set(defined(TrainOptions))


def test_what_was_not_said_is_not_asked_for():
    asked = collect_options(
        ["a.txt"], {"from_": "runs/x", "seed": 0, "steps": None, "test": (), "watch": False, "task": "x"}
    )
    assert asked == {
        "data": ("a.txt",), "options": {"start": "runs/x", "seed": 0}, "task": "x", "config": None, "changes": {},
    }  # fmt: skip
