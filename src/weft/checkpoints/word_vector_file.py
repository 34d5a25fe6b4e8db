"""Word vectors as the program word2vec writes them, and most since: `V D` on the first line, then a word and its D
numbers for each of V words; as text, or the numbers as raw little-endian float32 ("binary").

Files come from strangers: what the first line says is checked against the size of the file before memory is taken.
"""

from __future__ import annotations

import math
import mmap
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from weft.checkpoints.files import write_whole
from weft.errors import DataError

HEADER = re.compile(rb"(\d{1,10}) (\d{1,6})[ \r]*\n")
LONGEST = 1000  # bytes of a word
Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class WordVectorFile:
    """Words and their vectors (V, D), and whether the file was binary."""

    words: tuple[str, ...]
    vectors: Floats
    binary: bool


def is_word_vector_file(path: Path) -> bool:
    """Whether a file begins as such a file does."""
    try:
        with path.open("rb") as file:
            return HEADER.match(file.read(64)) is not None
    except OSError:
        return False


def read_word_vectors(path: Path) -> WordVectorFile:
    """All of it, or a `DataError` that says what is wrong with which word."""
    with path.open("rb") as file:
        found = HEADER.match(file.read(64))
        if found is None:
            raise DataError(
                f"{path} does not begin with two numbers",
                expected="the number of words and the width, as word2vec writes them",
            )
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _read(path, data, found.end(), int(found[1]), int(found[2]))


def _read(path: Path, data: mmap.mmap, begin: int, count: int, width: int) -> WordVectorFile:
    if count < 1 or width < 1:
        raise DataError(f"{path} says it has {count} words of {width} numbers", expected="one at least")
    binary = not _is_text(data, begin, width)
    least = count * (4 * width + 2 if binary else 2 * width + 1)  # bytes, with words and numbers as short as can be
    if len(data) - begin < least:
        raise DataError(
            f"{path} says it has {count:,} words of {width} numbers, and is only {len(data):,} bytes long",
            expected=f"{begin + least:,} bytes at least",
            advice="it is cut off, or its first line is wrong",
        )
    rows = _binary_rows(path, data, begin, count, width) if binary else _text_rows(path, data, begin, count, width)
    vectors = np.empty((count, width), dtype=np.float32)
    places: dict[str, int] = {}
    for number, (raw, vector) in enumerate(rows):
        word = _word(path, raw, number)
        if word in places:
            raise DataError(f"{path}: word {number + 1}, {word!r}, was there already", expected="each word once")
        if not np.isfinite(vector).all():
            raise DataError(f"{path}: the vector of {word!r} is not finite", expected="numbers")
        places[word] = number
        vectors[number] = vector
    return WordVectorFile(tuple(places), vectors, binary)


def _word(path: Path, raw: bytes, number: int) -> str:
    try:
        word = raw.decode()
    except UnicodeDecodeError:
        raise DataError(f"{path}: word {number + 1}, {raw[:40]!r}, is not valid UTF-8") from None
    if not word or len(raw) > LONGEST or any(c.isspace() or c == "\0" for c in word):
        raise DataError(f"{path}: word {number + 1} is {word[:40]!r}", expected=f"1 to {LONGEST} bytes without spaces")
    return word


def _is_text(data: mmap.mmap, begin: int, width: int) -> bool:
    """Whether what follows the first line is a word and numbers to read."""
    end = data.find(b"\n", begin, begin + LONGEST + 40 * width)
    line = data[begin : end if end >= 0 else min(len(data), begin + LONGEST + 40 * width)].split()
    try:
        return len(line) > 1 and bool([float(cell) for cell in line[1:]])
    except ValueError:
        return False


def _binary_rows(path: Path, data: mmap.mmap, begin: int, count: int, width: int) -> Iterator[tuple[bytes, Floats]]:
    place = begin
    for number in range(count):
        while data[place : place + 1] == b"\n":  # some programs end each row with one
            place += 1
        space = data.find(b" ", place, place + LONGEST + 1)
        if space < 0 or space + 1 + 4 * width > len(data):
            raise _cut(path, number, count)
        yield data[place:space], np.frombuffer(data[space + 1 : space + 1 + 4 * width], dtype="<f4")
        place = space + 1 + 4 * width
    if data[place:].strip(b"\n"):
        raise _more(path, count)


def _text_rows(path: Path, data: mmap.mmap, begin: int, count: int, width: int) -> Iterator[tuple[bytes, Floats]]:
    place, longest = begin, LONGEST + 64 * width
    for number in range(count):
        end = data.find(b"\n", place, place + longest)
        if end < 0:
            end = len(data)  # the last line may lack its end
            if place >= end:
                raise _cut(path, number, count)
        cells = data[place : min(end, place + longest)].rstrip(b" \r").split(b" ")
        try:
            with np.errstate(over="ignore"):  # what is too large is not finite, which is told
                vector = np.array([float(cell) for cell in cells[1:]]).astype(np.float32)
        except ValueError:
            vector = np.empty(0, dtype=np.float32)
        if len(vector) != width:
            raise DataError(
                f"{path}: word {number + 1}, {cells[0][:40]!r}, has {len(cells) - 1} cells after it",
                expected=f"{width} numbers",
            )
        yield cells[0], vector
        place = end + 1
    if place < len(data) and data[place:].strip():
        raise _more(path, count)


def _cut(path: Path, number: int, count: int) -> DataError:
    return DataError(f"{path} ends after {number:,} of {count:,} words", advice="it is cut off: fetch it again")


def _more(path: Path, count: int) -> DataError:
    return DataError(f"{path} goes on after the {count:,} words that its first line says", expected="so many words")


def write_word_vectors(path: Path, words: Sequence[str], vectors: Floats, *, binary: bool) -> None:
    """The file, whole or not at all; text has as many digits as give the same numbers back."""
    for word in words:
        if not word or any(c.isspace() for c in word):
            raise DataError(f"the word {word!r} cannot be written in this format", expected="words without spaces")
    if not math.isfinite(float(np.abs(vectors).max(initial=0))):
        raise DataError("vectors that are not finite", expected="numbers")
    plain = np.ascontiguousarray(vectors, dtype="<f4")

    def write(beside: Path) -> None:
        with beside.open("wb") as file:
            file.write(f"{len(words)} {plain.shape[1]}\n".encode())
            for word, vector in zip(words, plain, strict=True):
                if binary:
                    file.write(word.encode() + b" " + vector.tobytes() + b"\n")
                else:
                    file.write((word + " " + " ".join(f"{value:.9g}" for value in vector.tolist()) + "\n").encode())

    write_whole(path, write)
