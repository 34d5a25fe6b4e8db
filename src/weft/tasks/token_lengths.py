"""How long the texts of a column are in tokens, by a tokenizer learned from them as training would learn it.

Of very many texts, one in so many is looked at, from everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from weft.tasks.data_check import Progress
from weft.tasks.findings import Facts
from weft.text import Tokenizer

MAX_SAMPLE_CHARACTERS = 20_000_000  # characters that are looked at
TEXTS_PER_BATCH = 2048  # texts that are cut into tokens at once
MAX_CUT_SHARE = 0.05
Columns = Sequence[Sequence[str]]  # of one length


def one_in(columns: Columns) -> int:
    """Of so many rows, one is looked at."""
    return max(-(-sum(len(text) for column in columns for text in column) // MAX_SAMPLE_CHARACTERS), 1)


def sampled(columns: Columns) -> list[Sequence[str]]:
    """The rows that are looked at."""
    step = one_in(columns)
    return [column[::step] for column in columns]


def count_tokens(
    parts: Mapping[str, Columns], tokenizer: Tokenizer, progress: Progress | None = None
) -> dict[str, NDArray[np.int64]]:
    """Tokens of each text in the columns of each part: (columns, rows), of the rows that are looked at."""
    texts = {name: sampled(columns) for name, columns in parts.items()}
    total, done = sum(len(column) for columns in texts.values() for column in columns), 0
    found = {name: np.zeros((len(columns), len(columns[0])), dtype=np.int64) for name, columns in texts.items()}
    for name, columns in texts.items():
        for counts, column in zip(found[name], columns, strict=True):
            for start in range(0, len(column), TEXTS_PER_BATCH):
                batch = column[start : start + TEXTS_PER_BATCH]
                counts[start : start + TEXTS_PER_BATCH] = [len(ids) for ids in tokenizer.encode_batch(batch)]
                done += len(batch)
                if progress is not None:
                    progress(done, total)
    return found


def cut_facts(lengths: NDArray[np.int64], limits: Sequence[int]) -> Facts:
    """How many texts are longer than each limit, of how many whose tokens were counted."""
    return {"cut": {limit: int((lengths > limit).sum()) for limit in limits}, "counted": len(lengths)}


def cut_warning(part: Facts, what: str) -> Iterator[str]:
    """A sentence if many texts are longer than the largest limit; `what` says so, with a place for the limit."""
    limit, cut = list(part["cut"].items())[-1]
    if cut > MAX_CUT_SHARE * part["counted"]:
        yield f"{cut / part['counted']:.0%} of {what.format(limit)}: what comes after that may not be read"
