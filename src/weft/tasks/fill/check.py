"""What is looked at before learning to fill in: a text, or the texts of a table, whose labels mean nothing here."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from weft.errors import ConfigError
from weft.tasks.classify.check import LABELLED, check_labelled
from weft.tasks.data_check import CheckRequest, DataCheck
from weft.tasks.findings import Findings
from weft.tasks.generate.check import TEXTS
from weft.tasks.sources import DEMO, are_tables


def check_table(asked: CheckRequest) -> Findings:
    """As tables of labelled texts, without looking for a label."""
    if "label" in asked.columns:
        given = f"--label {asked.columns['label']!r} with fill"
        raise ConfigError(given, expected="classify, which learns labels")
    return check_labelled(asked, labelled=False)


def are_texts_in_tables(paths: Sequence[str], columns: Collection[str]) -> bool:
    """Tables, and what is said to have the columns of one."""
    return list(paths) != [DEMO] and (are_tables(paths) or bool(set(LABELLED.columns) & set(columns)))


TABLES = DataCheck(LABELLED.things, are_texts_in_tables, check_table, LABELLED.columns, LABELLED.options)
DATA_CHECKS = (TABLES, TEXTS)
