"""What a task says to `weft check` about data of its own kind, and which of these looks is meant.

A task has a look for each kind of data that it learns from: `DATA_CHECKS` in the `check.py` of its folder, which is
imported without torch; or for a task of a plugin the attribute `data_checks` of its description.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from weft.errors import ConfigError, UnsupportedError
from weft.tasks.findings import Findings
from weft.tasks.names import REGISTERED, task_folders, task_names

Progress = Callable[[int, int], None]
"""Told how much of how much is done."""


@dataclass(frozen=True)
class CheckRequest:
    """What is asked: files of each part, columns that were named by their options, the kind of a tokenizer.

    task      the name of the task, if it was said; else the files were recognised
    progress  called with the share that is done
    """

    train: Sequence[str]
    validation: Sequence[str] = ()
    test: Sequence[str] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    tokenizer: str | None = None
    task: str | None = None
    progress: Progress | None = None


@dataclass(frozen=True)
class DataCheck:
    """A look at one kind of data before training.

    things      what the data are, in a few words
    recognises  whether files are of this kind, by their names and first lines; and by the columns that were named
    check       reads the files of all parts as training reads them, and counts
    columns     options that name a part of them
    options     further options that it has, of `tokenizer` and `test`
    instead     what is expected where one of these is given that it does not have
    turn        when it is asked whether data are of this kind, as in `Task.turn`; None: only if the task was named
    """

    things: str
    recognises: Callable[[Sequence[str], Collection[str]], bool]
    check: Callable[[CheckRequest], Findings]
    columns: tuple[str, ...] = ()
    options: tuple[str, ...] = ("test",)
    instead: str = "none"
    turn: int | None = None

    def check_options(self, asked: CheckRequest) -> None:
        """Refuse options that mean nothing for these data."""
        for name in asked.columns:
            if name not in self.columns:
                expected = " and ".join(f"--{column}" for column in self.columns) or self.instead
                raise ConfigError(f"--{name} with {self.things}", expected=expected)
        if asked.test and "test" not in self.options:
            raise ConfigError(f"--test with {self.things}", expected=self.instead)
        if asked.tokenizer and "tokenizer" not in self.options:
            raise ConfigError(f"--tokenizer {asked.tokenizer} with {self.things}", expected=self.instead)


def data_checks(task: str) -> tuple[DataCheck, ...]:
    """Those of one task; none if it has no data of its own."""
    if task not in task_folders():
        return getattr(REGISTERED[task], "data_checks", ())
    module = f"{__package__}.{task}.check"
    return importlib.import_module(module).DATA_CHECKS if importlib.util.find_spec(module) else ()


def find_check(task: str | None, paths: Sequence[str], columns: Collection[str]) -> DataCheck:
    """The one of this task that recognises the files, else its last; of no task, the first in turn that does."""
    found = [one for name in ([task] if task else task_names()) for one in data_checks(name)]
    if not found:
        known = ", ".join(name for name in task_names() if data_checks(name))
        raise UnsupportedError(f"a check for the task {task!r} does not exist yet", expected=f"one of {known}")
    if task is None:
        found = sorted((one for one in found if one.turn is not None), key=lambda one: one.turn or 0)
    return next((one for one in found if one.recognises(paths, columns)), found[-1])
