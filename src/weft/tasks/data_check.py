"""What a task says to `weft check` about data of its own kind: a `DATA_CHECK` in its folder's `check.py`.

None of it needs torch.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from weft.tasks.names import task_names

Parts = tuple[Sequence[str], Sequence[str], Sequence[str]]  # files to learn from, to hold out, to test on
Counts = list[tuple[str, list[str]]]  # titles, and a cell for each part


class Findings(Protocol):
    """What was found; `problems` are what training refuses."""

    notes: list[str]
    warnings: list[str]
    problems: list[str]

    def to_dict(self) -> dict[str, Any]: ...

    @property
    def part_names(self) -> list[str]: ...

    def sentences(self) -> Iterable[str]:
        """What is told before the counts."""
        ...

    def counts(self) -> Counts: ...


@dataclass(frozen=True)
class DataCheck:
    """A look at the data of one task before training.

    things       what the data are, in a few words
    columns      options that name a part of them
    recognises   whether files are of this kind, by their names and first lines
    check        reads the files of all parts, with the columns that were named, and counts
    """

    things: str
    columns: tuple[str, ...]
    recognises: Callable[[Sequence[str], Collection[str]], bool]
    check: Callable[[Parts, Mapping[str, str]], Findings]


def own_checks() -> Iterator[tuple[str, DataCheck]]:
    """Of the tasks that have one, by name."""
    here = Path(__file__).parent
    for name in task_names():
        if (here / name / "check.py").exists():
            found = getattr(importlib.import_module(f"weft.tasks.{name}.check"), "DATA_CHECK", None)
            if found is not None:
                yield name, found


def own_check(task: str | None, paths: Sequence[str], columns: Collection[str]) -> DataCheck | None:
    """The one of this task; of no task, that which recognises the files."""
    found = (one for name, one in own_checks() if name == task or (task is None and one.recognises(paths, columns)))
    return next(found, None)
