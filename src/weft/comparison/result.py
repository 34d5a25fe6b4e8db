"""What came out of a comparison: rows, which one is best, and how it looks."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from weft.comparison.columns import cells, metric_title, titles
from weft.comparison.rows import Row, best_of, deciding_metric
from weft.pages import table
from weft.tasks.task import find_task
from weft.tasks.words import Words


@dataclass(frozen=True)
class Comparison:
    """Variants beside each other: `rows` are dicts as in `compare --json`, `best` is the name of the best one."""

    path: Path
    task: str
    rows: list[Row] = field(default_factory=list)

    @property
    def words(self) -> Words:
        """What the task says of itself."""
        return find_task(self.task).words

    @property
    def title(self) -> str:
        """The deciding metric and what it was measured on."""
        return metric_title(self.rows, self.words.metric(self.metric))

    @property
    def metric(self) -> str:
        """The measure that decides."""
        return deciding_metric(self.rows, self.words)

    @property
    def best(self) -> str | None:
        """The name of the variant that does best; None if none is finished."""
        return best_of(self.rows, self.metric, self.words.metric(self.metric))

    @property
    def failed(self) -> list[Row]:
        """Those that could not be trained, each with its `reason`."""
        return [row for row in self.rows if row["status"] == "failed"]

    def to_dict(self) -> dict[str, Any]:
        """For programs, and for compare.json."""
        return {
            "task": self.task,
            "out": str(self.path),
            "metric": self.metric,
            "best": self.best,
            "models": self.rows,
        }

    def table(self) -> list[list[str]]:
        """Titles, then the cells of each row, as text."""
        about = (self.metric, self.words.metric(self.metric))
        return [titles(self.rows, *about), *cells(self.rows, *about, self.best)]

    def by_length(self) -> tuple[str, list[list[str]]]:
        """What translations were measured by, and a table: a line for each length of sources, a column for each model.

        Empty if no finished variant knows it."""
        known = [row for row in self.rows if row["status"] == "finished" and row.get("by_length")]
        if not known:
            return "", []
        measure = "bleu" if all("bleu" in line for row in known for line in row["by_length"]) else "exact_match"
        form = "{:.2f}" if measure == "bleu" else "{:.4f}"
        heads = ["words of the source", "pairs", *(row["model"] for row in known)]
        found = [{line["words"]: line for line in row["by_length"]} for row in known]
        lines = [
            [words, f"{first['pairs']:,}", *(form.format(one[words][measure]) if words in one else "" for one in found)]
            for words, first in found[0].items()
        ]
        return measure, [heads, *lines]

    def __repr__(self) -> str:
        table = self.table()
        widths = [max(len(row[place]) for row in table) for place in range(len(table[0]))]
        lines = [
            "  ".join(
                cell.ljust(width) if not place else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in table
        ]
        told = [f"{row['model']}: {_first_line(row['reason'])}" for row in self.failed]
        return "\n".join([f"{self.task}, in {self.path}", *lines, *told])

    def html_table(self) -> str:
        """All numbers; the row of the best stands out."""
        heads, *rows = self.table()
        names = [row[0] for row in rows]
        return table(heads, rows, right=True, best=names.index(self.best) if self.best in names else -1)

    def _repr_html_(self) -> str:
        told = "".join(f"<p>{html.escape(row['model'] + ': ' + row['reason'])}</p>" for row in self.failed)
        return self.html_table() + told


def _first_line(text: str) -> str:
    return text.splitlines()[0] if text else ""
