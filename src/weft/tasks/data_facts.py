"""What the data of a run are like, in numbers: how many, how long, which classes. For a report, after training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.data import Examples, Labels
from weft.data.parallel import Pairs
from weft.data.pictures import Pictures
from weft.errors import DataError
from weft.tasks.fill_texts import FillDataConfig, read_fill_source
from weft.tasks.pair_tables import PairConfig, PairData, read_pair_data
from weft.tasks.picture_data import PictureData, PictureDataConfig, read_data
from weft.tasks.sources import DataConfig, Source, read_source
from weft.tasks.tables import TableConfig, Tables, read_tables
from weft.text import Corpus

if TYPE_CHECKING:
    from weft.tasks.run import Run

LARGE = 64 * 2**20  # bytes; data above are not read once more for the sake of a report
Data = Source | Tables | PairData | PictureData


def data_of(run: Run) -> Data | None:
    """The data that a run learned from and was judged by, read again; None: too large for that."""
    config = run.config.data
    found: Data
    if getattr(config, "bytes", 0) > LARGE or _is_large((*config.train, *config.validation, *config.test)):
        return None
    if isinstance(config, PictureDataConfig):
        found = read_data(config)
    elif isinstance(config, TableConfig):
        found = read_tables(config)
    elif isinstance(config, PairConfig):
        found = read_pair_data(config)
    elif isinstance(config, FillDataConfig):
        found = read_fill_source(config)
    else:
        assert isinstance(config, DataConfig)
        found = read_source(config)
    if found.config.fingerprint != config.fingerprint:
        raise DataError(f"the data in {', '.join(config.train)} have changed since this run was trained")
    return found


def _is_large(paths: Iterable[str]) -> bool:
    """Whether these files and folders are more than is worth reading; it stops looking when they are."""
    total = 0
    for path in map(Path, paths):
        for file in path.rglob("*") if path.is_dir() else [path]:
            total += file.stat().st_size if file.is_file() else 0
            if total > LARGE:
                return True
    return False


def parts_of(data: Any) -> dict[str, Any]:
    """What is learned from, what is held out, and what is tested on, as far as there is any."""
    parts = {"train": data.train, "validation": data.validation, "test": data.test}
    return {name: part for name, part in parts.items() if part is not None}


def judged_part(data: Any) -> tuple[str, Any]:
    """The test if there is one, else what was held out."""
    return ("validation", data.validation) if data.test is None else ("test", data.test)


def facts_of(data: Data) -> dict[str, Any]:
    """Of each part how many there are; classes and how often each occurs; lengths of what is learned from."""
    parts = parts_of(data)
    facts: dict[str, Any] = {"parts": {name: _count(part) for name, part in parts.items()}}
    if isinstance(data, Tables | PictureData):
        facts |= _labels({name: part.labels or [] for name, part in parts.items()}, data.labels)
    if isinstance(data, Tables):
        facts["lengths"] = {"words of a text": quarters(len(text.split()) for text in data.train.texts)}
        if data.train.pairs is not None:
            facts["lengths"]["words of the second"] = quarters(len(text.split()) for text in data.train.pairs)
    if isinstance(data, PairData):
        sides = {"words of a source": data.train.sources, "words of a target": data.train.targets}
        facts["lengths"] = {name: quarters(len(text.split()) for text in texts) for name, texts in sides.items()}
    if isinstance(data, PictureData):
        facts["pictures"] = {"size": data.train.size, "channels": data.train.channels}
    return facts


def _count(part: Corpus | Examples | Pairs | Pictures) -> dict[str, int]:
    if isinstance(part, Corpus):
        return {"texts": len(part.documents), "characters": part.characters}
    if isinstance(part, Examples):
        return {"examples": len(part), "characters": part.characters}
    return {"pairs": len(part)} if isinstance(part, Pairs) else {"pictures": len(part)}


def _labels(cells: dict[str, Sequence[str]], labels: Labels) -> dict[str, Any]:
    """How often each class occurs in each part, or where the numbers lie."""
    if labels.kind == "number":
        return {"numbers": {name: quarters(map(float, part)) for name, part in cells.items()}}
    counted = {name: Counter(one for cell in part for one in labels.names(cell)) for name, part in cells.items()}
    return {"classes": {one: {name: counts[one] for name, counts in counted.items()} for one in labels.classes}}


def quarters(values: Iterable[float]) -> list[float]:
    """The least, what a quarter, half and three quarters are below, the most."""
    found = np.fromiter(values, dtype=np.float64)
    return [] if not found.size else np.quantile(found, (0, 0.25, 0.5, 0.75, 1)).tolist()
