"""Typed mistakes, answered before torch is loaded: the index is asked first, and the real settings are checked again.

Which task is meant may follow from what the data hold, and which settings there are from the task. All that may be
meant are asked: a mistake is one if all of them refuse it, in the same words. Anything else is left to the real check.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.config import within
from weft.errors import ConfigError
from weft.index import check_inspected_name, index, is_enough, preset, stand_ins
from weft.tasks.asking import Names, applied, below, check_values, layered
from weft.tasks.names import task_names
from weft.tasks.options import COLUMN_OPTIONS
from weft.tasks.recipe import Recipe

Variant = dict[str, Any]  # one description of a task, as the index has it


class _UnsureError(Exception):
    """The index cannot tell."""


def refuse_mistakes(
    data: Sequence[str],
    options: Mapping[str, Any],
    *,
    task: str | None = None,
    config: str | None = None,
    changes: Mapping[str, Any] | None = None,
) -> None:
    """Raise `ConfigError` for what `make_request` and the check of its task would refuse, as far as it is known."""
    if not is_enough():
        return
    names = Names(preset, stand_ins()["TokenizerConfig"].registry)
    asked, recipe, said = layered(data, options, names, config=config, changes=changes)
    check_values(asked)
    answers = set()
    for variant in _variants(task or recipe.task, asked):
        try:
            _check(variant, asked, recipe, said)
        except ConfigError as error:
            answers.add(str(error))
        except _UnsureError:
            return
        else:
            return
    if len(answers) == 1:
        raise ConfigError(answers.pop())


def _variants(task: str | None, asked: Mapping[str, Any]) -> Iterator[Variant]:
    """The descriptions of tasks that may be meant."""
    tasks: dict[str, list[Variant]] = index()["tasks"]
    told = {index()["told"].get(Path(word).suffix.lower() or word) for word in asked["data"] if not Path(word).is_dir()}
    if task is not None:
        meant = [task]
    elif len(told) == 1 and None not in told and not any(Path(word).is_dir() for word in asked["data"]):
        meant = [str(told.pop())]
    else:
        meant = [name for name, found in tasks.items() if any(one["turn"] is not None for one in found)]
    for name in meant:
        if name not in tasks or name not in task_names():
            return
        found = tasks[name]
        if asked.get("model"):
            family, _ = preset(asked["model"])
            yield next((one for one in reversed(found) if family in one["families"]), found[0])
        elif asked.get("start"):
            yield from found
        else:
            yield from (one for one in found if one is found[0] or one["claims"])


def _check(variant: Variant, asked: Mapping[str, Any], recipe: Recipe, said: Mapping[str, Any]) -> None:
    """As `Task.check` does it."""
    classes, keys = stand_ins(), (*recipe.settings, *said)
    sections = {key.partition(".")[0] for key in keys}
    if asked.get("start") is None:
        _check_tokenizer(variant, asked, recipe, said)
        family, fields = preset(asked.get("model") or variant["family"])
        if family not in variant["families"]:
            raise _UnsureError
        words = {"vocab_size": 512} if variant["tokenizers"] else {}
        made = classes["ModelConfig"].from_config({"kind": family, **words, **fields, **variant["families"][family]})
        applied("model", made, recipe, said)
    elif asked.get("tokenizer") or asked.get("model") or "tokenizer" in sections:
        raise _UnsureError
    training = classes["TrainingConfig"](steps=1, batch=1)
    if asked.get("freeze") is not None:
        training = training.override({"freeze": asked["freeze"]})
    applied("training", training, recipe, said)
    columns = {name for name in COLUMN_OPTIONS if asked.get(name)}
    if columns - set(variant["columns"]) or any(key.removeprefix("data.") in variant["found"] for key in keys):
        raise _UnsureError
    given = {name: asked[name] for name in columns} | {"train": asked["data"]}
    applied("data", classes[variant["data"]](**given), recipe, said)
    if variant["objective"] is not None:
        applied("objective", classes[variant["objective"]](), recipe, said)
    elif "objective" in sections:
        raise _UnsureError


def _check_tokenizer(variant: Variant, asked: Mapping[str, Any], recipe: Recipe, said: Mapping[str, Any]) -> None:
    """Of the one that is named, or of all that may be meant where none is."""
    if not variant["tokenizers"] and (asked.get("tokenizer") or any(k.startswith("tokenizer.") for k in said)):
        raise _UnsureError
    named = asked.get("tokenizer")
    answers = set()
    for kind in [named] if named and variant["tokenizers"] else variant["tokenizers"]:
        try:
            applied("tokenizer", stand_ins()["TokenizerConfig"].from_config(kind), recipe, said)
        except ConfigError as error:
            answers.add(str(error))
        else:
            return
    if len(answers) > 1:
        raise _UnsureError
    if answers:
        raise ConfigError(answers.pop())


def refuse_inspection(name: str, changes: Mapping[str, Any]) -> None:
    """Refuse a name of a model that does not exist, and settings that it does not have."""
    path = Path(name)
    if not is_enough() or path.suffix == ".toml" or path.is_dir() or "/" in name or "\\" in name:
        return
    classes = stand_ins()
    families = index()["classes"]["ModelConfig"]["kinds"]
    check_inspected_name(name, families, index()["presets"])
    family, fields = preset(name)
    if any(key.partition(".")[0] not in ("model", "training") or key.startswith("model.head") for key in changes):
        return
    known = index()["classes"][families[family]]["fields"]
    words = {"vocab_size": 8192} if "vocab_size" in known else {}
    made = classes["ModelConfig"].from_config({"kind": family, **words, **fields})
    said = {key: value for key, value in below("model", changes).items() if key != "preset"}
    within("model", lambda: made.override(said))
    within("training", lambda: classes["TrainingConfig"](steps=1, batch=1).override(below("training", changes)))
