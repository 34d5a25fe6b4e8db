"""Data: texts as rows of ids on disk, tables of labelled texts, and batches in an order that is a pure function.

Names are loaded when they are first used; none of them needs torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.lazy import lazy

if TYPE_CHECKING:
    from weft.data.by_length import ByLength as ByLength
    from weft.data.columns import Columns as Columns
    from weft.data.columns import find_columns as find_columns
    from weft.data.demo import demo_table as demo_table
    from weft.data.examples import Examples as Examples
    from weft.data.examples import read_examples as read_examples
    from weft.data.labelled_pairs import LabelledPairs as LabelledPairs
    from weft.data.labels import Labels as Labels
    from weft.data.marks import Marks as Marks
    from weft.data.masking import Masking as Masking
    from weft.data.order import Shuffle as Shuffle
    from weft.data.pretraining import PretrainingRow as PretrainingRow
    from weft.data.pretraining import PretrainingSamples as PretrainingSamples
    from weft.data.sentences import Sentences as Sentences
    from weft.data.sentences import tokenise_sentences as tokenise_sentences
    from weft.data.split import class_weights as class_weights
    from weft.data.split import stratified_split as stratified_split
    from weft.data.table_check import TableCheck as TableCheck
    from weft.data.table_check import compare_tables as compare_tables
    from weft.data.tables import Row as Row
    from weft.data.tables import Table as Table
    from weft.data.tables import read_table as read_table
    from weft.data.token_file import TokenFile as TokenFile
    from weft.data.token_file import tokenise as tokenise
    from weft.data.windows import Sweep as Sweep
    from weft.data.windows import Windows as Windows

_HOME = {
    "ByLength": "by_length",
    "Columns": "columns",
    "Examples": "examples",
    "LabelledPairs": "labelled_pairs",
    "Labels": "labels",
    "Marks": "marks",
    "Masking": "masking",
    "PretrainingRow": "pretraining",
    "PretrainingSamples": "pretraining",
    "Row": "tables",
    "Sentences": "sentences",
    "Shuffle": "order",
    "Sweep": "windows",
    "Table": "tables",
    "TableCheck": "table_check",
    "TokenFile": "token_file",
    "Windows": "windows",
    "class_weights": "split",
    "compare_tables": "table_check",
    "demo_table": "demo",
    "find_columns": "columns",
    "read_examples": "examples",
    "read_table": "tables",
    "stratified_split": "split",
    "tokenise": "token_file",
    "tokenise_sentences": "sentences",
}

__all__ = [
    "ByLength",
    "Columns",
    "Examples",
    "LabelledPairs",
    "Labels",
    "Marks",
    "Masking",
    "PretrainingRow",
    "PretrainingSamples",
    "Row",
    "Sentences",
    "Shuffle",
    "Sweep",
    "Table",
    "TableCheck",
    "TokenFile",
    "Windows",
    "class_weights",
    "compare_tables",
    "demo_table",
    "find_columns",
    "read_examples",
    "read_table",
    "stratified_split",
    "tokenise",
    "tokenise_sentences",
]

__getattr__, __dir__ = lazy(__name__, _HOME)
