"""`weft.train(…)`: training from Python, with the options of the command; data may be objects of Python."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import time
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from weft.checkpoints.files import write_text
from weft.errors import ConfigError
from weft.tasks.experiment import Experiment
from weft.tasks.options import Asked, Given, TrainOptions, check_keywords, collect_options, with_keywords
from weft.tasks.preparation import cache_folder
from weft.tasks.request import make_request
from weft.tasks.run import Run, load
from weft.tasks.task import Task, find_task

log = logging.getLogger(__name__)


@with_keywords(TrainOptions)
def train(data: Given = None, **options: Unpack[TrainOptions]) -> Run:
    """Train on data of your own: `weft.train("book.txt", minutes=5)`, `weft.train("reviews.csv", task="classify")`.

    `data` is a path, several paths, "demo", a list of texts, of (text, label) tuples, of (source, target) tuples to
    translate, of (array, label) tuples for images (or a tuple of all pixels and all labels), or a data frame; so are
    `validation` and `test`. The task is found from the data or named by `task`. The other keywords are the options of
    `weft train` (`from_` is its --from); `config="recipe.toml"` gives all of that from a file, and
    `set={"model.width": 128}` sets anything else. Returns what the task makes: a `TextGenerator`, a `TextClassifier` …
    """
    started = time.perf_counter()
    request = make_request(**asked_in_python(check_keywords(data, options, TrainOptions)))
    request.started = started
    run, _ = Experiment.plan(request, _log).fit()
    return load(run.path)


def asked_in_python(said: dict[str, Any]) -> Asked:
    """The request that keywords make; data that are objects of Python are written down."""
    parts = ("data", "validation", "test")
    paths = {name: paths_of(said[name], said.get("task")) for name in parts if name in said}
    return collect_options(
        paths.get("data", ()), {name: value for name, value in said.items() if name != "data"} | paths
    )


def _log(event: dict[str, Any]) -> None:
    if event["event"] == "warning":
        log.warning("%s", event["text"])
    else:
        log.debug("%s", event)


def paths_of(data: Given, task: str | None = None) -> tuple[str, ...]:
    """Paths as they are; texts, tuples and data frames are written down first: a run can then be resumed."""
    if isinstance(data, str | Path):
        return (str(data),)
    if isinstance(data, tuple) and len(data) == 2 and hasattr(data[0], "ndim"):  # images and their labels
        return (_written_images(*data),)
    if hasattr(data, "columns") and hasattr(data, "to_dict"):  # a data frame
        columns = data.to_dict("list")
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return (_written_table(rows),)
    if not len(data):
        raise ConfigError("an empty list of data", expected="paths, texts, or (text, label) pairs")
    if all(isinstance(item, tuple) and len(item) == 2 and hasattr(item[0], "ndim") for item in data):
        return (_written_images([item[0] for item in data], [item[1] for item in data]),)
    if all(isinstance(item, tuple) for item in data):
        return (_written_table([_row(item, task) for item in data]),)
    if any(not isinstance(item, str | Path) for item in data):
        raise ConfigError("a list of other things than texts", expected="paths, texts, or (text, label) tuples")
    if all(isinstance(item, Path) or os.path.exists(item) for item in data):  # False for what is no name at all
        return tuple(str(item) for item in data)
    if task is not None and not find_task(task).takes_texts:
        raise ConfigError(f"a list of texts to {task}", expected=f"{_forms(task)} tuples, or paths that exist")
    return tuple(_written(str(item), ".txt") for item in data)


def _row(item: tuple[Any, ...], task: str | None) -> dict[str, Any]:
    """By the columns that the task gives to a tuple of so many."""
    names = next((names for names in _rows(task) if len(names) == len(item)), None)
    if names is None:
        raise ConfigError(f"a tuple of {len(item)}", expected=_forms(task))
    return dict(zip(names, item, strict=True))


def _rows(task: str | None) -> tuple[tuple[str, ...], ...]:
    return (Task if task is None else find_task(task)).rows


def _forms(task: str | None) -> str:
    """What a tuple may hold."""
    return " or ".join(f"({', '.join(names)})" for names in _rows(task)).replace("pair", "second text")


def _written_table(rows: list[dict[str, Any]]) -> str:
    lines = (json.dumps(_plain(row), ensure_ascii=False) for row in rows)
    return _written("".join(line + "\n" for line in lines), ".jsonl")


def _written_images(pixels: Any, labels: Any) -> str:
    """Arrays as one file; the labels become text."""
    try:
        array = np.asarray(pixels)
    except ValueError:
        raise ConfigError("images of different sizes", expected="arrays of one size, or paths") from None
    words = np.asarray([str(label) for label in labels])
    digest = hashlib.sha256(array.tobytes() + repr((array.shape, array.dtype.str, words.tolist())).encode()).hexdigest()
    path = cache_folder() / "images" / f"{digest[:16]}.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(f".{os.getpid()}.part.npz")
        np.savez(beside, images=array, labels=words)
        beside.replace(path)
    return str(path)


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Cells as JSON has them; numbers of numpy become plain ones, and not-a-number becomes nothing."""
    plain = {str(name): value.item() if hasattr(value, "item") else value for name, value in row.items()}
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in plain.items()}


def _written(text: str, suffix: str) -> str:
    path = cache_folder() / "texts" / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}{suffix}"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
    return str(path)
