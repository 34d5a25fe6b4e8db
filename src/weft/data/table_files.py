"""Files that hold tables: which encoding, which separator, and the records one after the other, as a stream.

A record that cannot be read is passed on with what is wrong with it; the reader decides how many are too many.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import itertools
import json
import os
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from weft.errors import DataError
from weft.text.files import CHUNK, MARKS, Document

LONGEST = 1 << 24  # characters in a line or a cell: more is no table, or a quote that is never closed
ARRAY = 1 << 28  # characters of a JSON array, which cannot be read as a stream
SAMPLE = 100  # records that format and header are judged by
SUFFIXES = (".csv", ".tsv", ".tab", ".json", ".jsonl", ".ndjson")
ALIKE = 0.9  # the share of lines with as many tabs as the first, in a table that does not say it is one
HEAD = 1 << 16  # bytes by which a file without such an ending is judged
UNDEFINED = (b"\x81", b"\x8d", b"\x8f", b"\x90", b"\x9d")  # bytes without a meaning in Windows-1252


class Record(NamedTuple):
    """Cells (by name in JSON) with the line where they begin; no cells if there is a problem."""

    line: int
    span: int  # how many lines it takes
    cells: list[str] | dict[str, str] | None
    problem: str = ""


class Format(NamedTuple):
    """How the records of a file are written."""

    kind: str  # "csv" with quotes, "tabs" without, "lines" of JSON objects, an "array" of them
    delimiter: str = ""


# -- characters -------------------------------------------------------------------------------


def _open(path: Path) -> io.BufferedIOBase:
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if packed else path.open("rb")


def foreign_encoding(path: Path) -> str:
    """`cp1252` or `latin-1` for a file in old Western European letters; nothing for what is or should be Unicode.

    A file with more good than bad UTF-8 characters is damaged UTF-8: read as latin-1, all the good would be garbled.
    """
    good = bad = 0
    cp1252 = True
    strict, lenient = (codecs.getincrementaldecoder("utf-8")(errors) for errors in ("strict", "replace"))
    try:
        with _open(path) as file:
            chunk = file.read(CHUNK)
            if any(chunk.startswith(mark) for mark, _ in MARKS):
                return ""
            while chunk:
                strict.decode(chunk)
                chunk = file.read(CHUNK)
            strict.decode(b"", final=True)
            return ""
    except UnicodeDecodeError:
        pass
    except (OSError, EOFError, zlib.error):
        return ""  # reading it will say what is wrong
    with _open(path) as file:
        while chunk := file.read(CHUNK):
            cp1252 = cp1252 and not any(byte in chunk for byte in UNDEFINED)
            text = lenient.decode(chunk)
            broken = text.count("\ufffd")
            bad += broken
            good += len(text) - len(text.encode("ascii", "ignore")) - broken
    if good > bad:
        return ""
    return "cp1252" if cp1252 else "latin-1"


def _pieces(path: Path, encoding: str) -> Iterator[str]:
    """The clean text of a file: decoded, and every line ending a newline."""
    if not encoding:
        yield from Document.of_file(path).read()
        return
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(encoding)(), translate=True)
    with _open(path) as file:
        while chunk := file.read(CHUNK):
            if b"\0" in chunk:
                raise DataError(f"{path} is a binary file (it holds NUL bytes)", expected="a table as text")
            yield decoder.decode(chunk)
    yield decoder.decode(b"", final=True)


def read_lines(path: Path, encoding: str) -> Iterator[str]:
    """The lines of a file, without their newlines; only a newline ends a line."""
    rest, count = "", 0
    for piece in _pieces(path, encoding):
        parts = (rest + piece).split("\n")
        rest = parts.pop()
        count += len(parts)
        yield from parts
        if len(rest) > LONGEST:
            raise DataError(f"line {count + 1} of {path} is longer than {LONGEST} characters", expected="a table")
    if rest:
        yield rest


# -- records ----------------------------------------------------------------------------------


def read_records(path: Path, encoding: str, form: Format) -> Iterator[Record]:
    """All records of a file in order, also the broken ones; blank lines are none."""
    if form.kind == "array":
        return _array_records(path, encoding)
    lines = read_lines(path, encoding)
    if form.kind == "lines":
        return _json_records(lines)
    return _quoted_records(lines, form.delimiter) if form.kind == "csv" else _tab_records(lines)


def _tab_records(lines: Iterable[str]) -> Iterator[Record]:
    for number, line in enumerate(lines, 1):
        if line and not (line.isspace() and "\t" not in line):
            yield Record(number, 1, line.split("\t"))


def _quoted_records(lines: Iterable[str], delimiter: str) -> Iterator[Record]:
    """Comma-separated values (RFC 4180); the reader goes on after a record that breaks the rules of quoting."""
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST))  # a setting of the process: it is only ever raised
    reader = csv.reader((line + "\n" for line in lines), delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            span = max(reader.line_num - line + 1, 1)
            yield Record(line, span, None, _quoting_problem(str(error)))
            continue
        if cells and not (len(cells) == 1 and not cells[0].strip()):
            yield Record(line, reader.line_num - line + 1, cells)


def _quoting_problem(message: str) -> str:
    if "unexpected end" in message or "larger than" in message:
        return "opens a quote that is never closed"
    return 'has a quote inside a quoted cell that is not doubled ("")'


def _json_records(lines: Iterable[str]) -> Iterator[Record]:
    for number, line in enumerate(lines, 1):
        if not line or line.isspace():
            continue
        try:
            found = json.loads(line, object_pairs_hook=_unique, parse_int=str, parse_float=str)
        except (ValueError, RecursionError) as error:
            repeated = str(error) if isinstance(error, _RepeatedNameError) else "is no JSON"
            yield Record(number, 1, None, repeated)
            continue
        yield _of_object(number, found)


def _array_records(path: Path, encoding: str) -> Iterator[Record]:
    pieces, size = [], 0
    for piece in _pieces(path, encoding):
        pieces.append(piece)
        size += len(piece)
        if size > ARRAY:
            given = f"{path} is a JSON array of more than {ARRAY >> 20} MB"
            raise DataError(given, expected="JSON lines, which are read as a stream", advice="write one object a line")
    try:
        found = json.loads("".join(pieces), object_pairs_hook=_unique, parse_int=str, parse_float=str)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{path} is not valid JSON: {error}", expected="a list of objects, or an object a line"
        ) from None
    if not isinstance(found, list):
        raise DataError(f"{path} holds one JSON value", expected="a list of objects, or an object a line")
    for number, item in enumerate(found, 1):
        yield _of_object(number, item)


class _RepeatedNameError(ValueError):
    """A JSON object that has a name twice."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise _RepeatedNameError(f"has the name {twice!r} twice")
    return found


def _of_object(line: int, found: Any) -> Record:
    if not isinstance(found, dict):
        return Record(line, 1, None, "is no JSON object")
    return Record(line, 1, {name: _cell(value) for name, value in found.items()})


def _cell(value: Any) -> str:
    """A JSON value as the text of a cell: numbers as they were written, lists as JSON, null as nothing."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


# -- recognising ------------------------------------------------------------------------------


def _suffix(path: Path) -> str:
    """The end of a name, packed or not."""
    names = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    return names[-1] if names else ""


def is_table(path: Path) -> bool:
    """Whether a file is a table: by the end of its name, else if it holds JSON objects or the same tabs in its lines.

    A text with commas in it is none, whatever they look like. What is no file at all is not looked into.
    """
    if _suffix(path) in SUFFIXES:
        return not os.path.isdir(path)
    if not os.path.isfile(path):  # which also answers for names that no system allows
        return False
    try:
        with _open(path) as file:
            head = file.read(HEAD)
    except (OSError, EOFError, zlib.error):
        return False
    mark, encoding = next((found for found in MARKS if head.startswith(found[0])), (b"", "utf-8"))
    lines = head[len(mark) :].decode(encoding, "replace").split("\n")
    lines = [line for line in (lines[:-1] if len(head) == HEAD else lines) if line.strip()]  # the last one may be cut
    if not lines:
        return False
    if lines[0].lstrip().startswith('{"'):
        return next(_json_records(lines[:1])).cells is not None
    tabs = lines[0].count("\t")
    filled = sum(bool(cell.strip()) for cell in lines[0].split("\t"))
    alike = sum(line.count("\t") == tabs for line in lines)
    return tabs > 0 and filled > 1 and len(lines) > 1 and alike >= ALIKE * len(lines)


def find_format(path: Path, encoding: str) -> Format:
    """How a file is written, by the end of its name and by its content."""
    suffix = _suffix(path)
    start = list(itertools.islice(read_lines(path, encoding), 2 * SAMPLE))
    head = next((line.lstrip() for line in start if line.strip()), "")
    if not head:
        raise DataError(f"{path} holds nothing but blank lines", expected="a table with a header and rows")
    if suffix in (".json", ".jsonl", ".ndjson") or (suffix not in (".csv", ".tsv") and head.startswith('{"')):
        return Format("array" if head.startswith("[{") or (suffix == ".json" and head[0] == "[") else "lines")
    if suffix in (".tsv", ".tab") or (suffix != ".csv" and any("\t" in line for line in start)):
        if not any("\t" in line for line in start):
            raise DataError(f"there is no tab in {path}", expected="columns separated by tabs", advice=_other(path))
        return Format("tabs", "\t")
    delimiter = _delimiter(start)
    if suffix not in (".csv",) and not delimiter:
        raise DataError(f"{path} is no table: no tabs and no columns", expected="a .csv, .tsv or .jsonl file")
    return Format("csv", delimiter or ",")


def _other(path: Path) -> str:
    return f"if commas separate them, call it {path.with_suffix('.csv').name}"


def _delimiter(lines: list[str]) -> str:
    """What cuts most of the first records into the same number of cells, at least two; nothing if nothing does."""
    best, chosen = 0.5, ""
    for delimiter in (",", ";", "\t"):
        records = list(itertools.islice(_quoted_records(lines, delimiter), SAMPLE))
        widths = [len(record.cells) if record.cells else 0 for record in records]
        if not widths or widths[0] < 2:
            continue
        share = widths.count(widths[0]) / len(widths)
        if share > best:
            best, chosen = share, delimiter
    return chosen
