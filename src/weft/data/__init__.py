"""Data: texts as rows of ids on disk, tables of labelled texts, and batches in an order that is a pure function.

Names are loaded when they are first used; none of them needs torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.lazy import lazy

if TYPE_CHECKING:
    from weft.data.by_length import ByLength as ByLength
    from weft.data.column_check import TableCheck as TableCheck
    from weft.data.column_check import compare_tables as compare_tables
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
    from weft.data.parallel import Pairs as Pairs
    from weft.data.parallel import read_pairs as read_pairs
    from weft.data.parallel import read_parallel as read_parallel
    from weft.data.pretraining import PretrainingRow as PretrainingRow
    from weft.data.pretraining import PretrainingSamples as PretrainingSamples
    from weft.data.sentences import Sentences as Sentences
    from weft.data.sentences import tokenise_sentences as tokenise_sentences
    from weft.data.sides import Sides as Sides
    from weft.data.sides import find_sides as find_sides
    from weft.data.spans import SpanMarks as SpanMarks
    from weft.data.spans import SpanRow as SpanRow
    from weft.data.spans import Spans as Spans
    from weft.data.spans import SpanSamples as SpanSamples
    from weft.data.split import class_weights as class_weights
    from weft.data.split import grouped_split as grouped_split
    from weft.data.split import stratified_split as stratified_split
    from weft.data.streams import ContiguousStreams as ContiguousStreams
    from weft.data.streams import StreamSegments as StreamSegments
    from weft.data.tables import Table as Table
    from weft.data.tables import TableRow as TableRow
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
    "ContiguousStreams": "streams",
    "Marks": "marks",
    "Masking": "masking",
    "Pairs": "parallel",
    "PretrainingRow": "pretraining",
    "PretrainingSamples": "pretraining",
    "TableRow": "tables",
    "Sentences": "sentences",
    "Shuffle": "order",
    "Sides": "sides",
    "SpanMarks": "spans",
    "SpanRow": "spans",
    "SpanSamples": "spans",
    "Spans": "spans",
    "StreamSegments": "streams",
    "Sweep": "windows",
    "Table": "tables",
    "TableCheck": "column_check",
    "TokenFile": "token_file",
    "Windows": "windows",
    "class_weights": "split",
    "compare_tables": "column_check",
    "demo_table": "demo",
    "find_columns": "columns",
    "find_sides": "sides",
    "grouped_split": "split",
    "read_examples": "examples",
    "read_pairs": "parallel",
    "read_parallel": "parallel",
    "read_table": "tables",
    "stratified_split": "split",
    "tokenise": "token_file",
    "tokenise_sentences": "sentences",
}

__all__ = [
    "ByLength",
    "Columns",
    "ContiguousStreams",
    "Examples",
    "LabelledPairs",
    "Labels",
    "Marks",
    "Masking",
    "Pairs",
    "PretrainingRow",
    "PretrainingSamples",
    "Sentences",
    "Shuffle",
    "Sides",
    "SpanMarks",
    "SpanRow",
    "SpanSamples",
    "Spans",
    "StreamSegments",
    "Sweep",
    "Table",
    "TableCheck",
    "TableRow",
    "TokenFile",
    "Windows",
    "class_weights",
    "compare_tables",
    "demo_table",
    "find_columns",
    "find_sides",
    "grouped_split",
    "read_examples",
    "read_pairs",
    "read_parallel",
    "read_table",
    "stratified_split",
    "tokenise",
    "tokenise_sentences",
]

__getattr__, __dir__ = lazy(__name__, _HOME)
