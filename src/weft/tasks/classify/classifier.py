"""Using a classifier: what it says of texts, and how often it is right."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from weft.data import Examples, Labels, read_examples
from weft.data.columns import Columns, find_columns
from weft.errors import DataError, UnsupportedError
from weft.models import ClassifiesText
from weft.models.classes import Classes
from weft.tasks.classify.answers import Answer, answers_of, labels_of
from weft.tasks.classify.evaluator import EvaluationSplit, Evaluator, logits_of
from weft.tasks.classify.tables import TableConfig, joined, open_tables, read_tables
from weft.tasks.encoded import encoded

if TYPE_CHECKING:
    from weft.tasks.run import Run

MAX_IMPORTED_TOKENS = 512  # tokens of a text that an imported model reads
Input = str | tuple[str, str]


class Classifier:
    """A run that classifies, opened."""

    def __init__(self, run: Run) -> None:
        config = run.model_config
        head = getattr(config, "head", None)
        if ClassifiesText not in config.provides or not isinstance(head, Classes):
            raise UnsupportedError(
                f"{run.directory.path} does not classify",
                expected="a run of weft train classify, or a classifier from Hugging Face",
            )
        self.run, self.head = run, head
        length = None if self.table is None else self.table.length
        wanted = length or MAX_IMPORTED_TOKENS
        self.length = min(wanted, config.context or wanted)

    @functools.cached_property
    def labels(self) -> Labels:
        """The classes by name."""
        return labels_of(self.head, "" if self.table is None else self.table.separator)

    @functools.cached_property
    def table(self) -> TableConfig | None:
        """The table it learned from; a model from elsewhere has none."""
        return None if self.run.is_imported else cast("TableConfig", self.run.config.data)

    @property
    def is_paired(self) -> bool | None:
        """Whether it reads pairs; None: unknown."""
        return None if self.table is None else self.table.pair is not None

    def answers(self, inputs: Sequence[Input]) -> list[Answer]:
        """One for each text or pair, in the order given; texts of similar length are read together."""
        if not inputs:
            return []
        parts = [(given,) if isinstance(given, str) else tuple(given) for given in inputs]
        self.check(parts)
        logits = logits_of(self.run.model, encoded(self.run.tokenizer, parts, self.length), self.run.device)
        return answers_of(logits, self.labels)

    def check(self, parts: Sequence[tuple[str, ...]]) -> None:
        """Refuse single texts where it learned from pairs, and the other way round."""
        wanted = {None: (1, 2), True: (2,), False: (1,)}[self.is_paired]
        for given in parts:
            if len(given) not in wanted:
                raise DataError(
                    f"{len(given)} text{'s' if len(given) > 1 else ''} to classify together",
                    expected="pairs of texts" if wanted == (2,) else "one text at a time",
                    advice=f"{self.run.directory.path} was trained on {'pairs' if wanted == (2,) else 'single texts'}",
                )

    # -- how good it is -----------------------------------------------------------------------

    def evaluate(self, *data: str) -> dict[str, Any]:
        """All metrics: on the run's own test or validation examples, or on other tables."""
        examples, measured_on = self._examples(data)
        assert examples.labels is not None
        values = self.labels.encode(examples.labels, examples.lines, examples.name)
        judged = EvaluationSplit(encoded(self.run.tokenizer, examples.inputs(), self.length), values)
        judge = Evaluator(self.labels, 0.0, 1.0, self.run.device)  # the model as it is used says numbers as they are
        metrics = judge.measure(self.run.model, judged, whole=True)
        deviation = 1.0 if self.table is None else self.table.deviation
        loss = metrics.pop("validation_loss") / deviation**2
        return {"loss": loss, **metrics, "examples": len(examples), "measured_on": measured_on}

    def _examples(self, data: Sequence[str]) -> tuple[Examples, str]:
        if not data:
            if self.table is None:
                raise DataError(
                    f"{self.run.directory.path} was not trained here: it has no examples of its own",
                    expected="a table to measure it on",
                    advice=f"weft evaluate {self.run.directory.path} test.csv",
                )
            tables = read_tables(self.table)
            return (tables.validation, "validation") if tables.test is None else (tables.test, "test")
        opened = open_tables(data, "test")
        columns = self._columns(opened[0].columns) or find_columns(opened[0])
        if self.is_paired is False:
            columns = Columns(columns.text, None, columns.label)
        return joined([read_examples(table, columns) for table in opened]), "data"

    def _columns(self, there: Sequence[str]) -> Columns | None:
        """The columns it learned from, if they are there."""
        table = self.table
        if table is None or table.text is None:
            return None
        names = [name for name in (table.text, table.pair, table.label) if name is not None]
        return Columns(table.text, table.pair, table.label) if set(names) <= set(there) else None

    def columns_of(self, table: Any, text: str | None, pair: str | None) -> Columns:
        """Which columns of a table hold the texts to classify."""
        known = self.table
        if (
            text is None
            and pair is None
            and known is not None
            and {known.text, known.pair} - {None} <= set(table.columns)
        ):
            return Columns(cast("str", known.text), known.pair)
        found = find_columns(table, text, pair, labelled=False)
        return found if self.is_paired is not False or pair else Columns(found.text)
