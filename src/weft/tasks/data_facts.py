"""What the data of a run are like, in numbers: how many, how long, which classes. For a report, after training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from weft.data import Labels
from weft.errors import DataError

if TYPE_CHECKING:
    from weft.tasks.run import Run

MAX_REREAD_BYTES = 64 * 2**20  # bytes; data above are not read once more for the sake of a report


class Data(Protocol):
    """The data of a run, split: what a task's `read_data` gives."""

    @property
    def config(self) -> Any: ...

    def facts(self) -> dict[str, Any]:
        """Of each part how many there are; classes and how often each occurs; lengths of what is learned from."""
        ...


def data_of(run: Run) -> Data | None:
    """The training, validation and test data of a run, read again; None: too large for that."""
    config = run.config.data
    if getattr(config, "bytes", 0) > MAX_REREAD_BYTES or _is_large((*config.train, *config.validation, *config.test)):
        return None
    found: Data = run.description.read_data(config)
    if found.config.fingerprint != config.fingerprint:
        raise DataError(f"the data in {', '.join(config.train)} have changed since this run was trained")
    return found


def _is_large(paths: Iterable[str]) -> bool:
    """Whether these files and folders are more than is worth reading; it stops looking when they are."""
    total = 0
    for path in map(Path, paths):
        for file in path.rglob("*") if path.is_dir() else [path]:
            total += file.stat().st_size if file.is_file() else 0
            if total > MAX_REREAD_BYTES:
                return True
    return False


def parts_of(data: Any) -> dict[str, Any]:
    """The training, validation and test part, as far as they exist."""
    parts = {"train": data.train, "validation": data.validation, "test": data.test}
    return {name: part for name, part in parts.items() if part is not None}


def evaluation_part(data: Any) -> tuple[str, Any]:
    """The test part if there is one, else the validation part."""
    return ("validation", data.validation) if data.test is None else ("test", data.test)


def label_facts(parts: Mapping[str, Any], labels: Labels) -> dict[str, Any]:
    """How often each class occurs in each part, or where the numbers lie."""
    cells: dict[str, Sequence[str]] = {name: part.labels or [] for name, part in parts.items()}
    if labels.kind == "regression":
        return {"numbers": {name: quarters(map(float, part)) for name, part in cells.items()}}
    counted = {name: Counter(one for cell in part for one in labels.names(cell)) for name, part in cells.items()}
    return {"classes": count_classes(counted, labels.classes)}


def count_classes(counted: Mapping[str, Counter[str]], classes: Iterable[str]) -> dict[str, dict[str, int]]:
    """The counts of each class, by part."""
    return {one: {name: counts[one] for name, counts in counted.items()} for one in classes}


def quarters(values: Iterable[float]) -> list[float]:
    """The least, what a quarter, half and three quarters are below, the most."""
    found = np.fromiter(values, dtype=np.float64)
    return [] if not found.size else np.quantile(found, (0, 0.25, 0.5, 0.75, 1)).tolist()
