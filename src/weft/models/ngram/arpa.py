"""ARPA files: how SRILM, KenLM and others write count models down, as text.

    \\data\\                     how many n-grams of each length there are
    ngram 1=20001
    \\1-grams:                  the logarithm (base 10) of each probability, the words, and of what is left for others
    -2.1	the	-0.7
    \\end\\

A text begins with `<s>` and ends with `</s>`. Here both are one token, the end of a text: `<s>` where it comes before
others, `</s>` where it follows them. `<unk>` is the token for what the vocabulary lacks. −99 is the logarithm of 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weft.errors import DataError, UnsupportedError
from weft.models.ngram.model import MAX_ORDER, NGram, NGramConfig
from weft.models.ngram.smoothing import ImportedConfig
from weft.models.ngram.tables import Floats, Level, NGramTables

BEGIN, END, UNKNOWN = "<s>", "</s>", "<unk>"
LOG_OF_ZERO = -99.0
MAX_ROUNDING = 1e-4  # how far above 0 a rounded logarithm may be
LINES_PER_PIECE = 1 << 16  # of text that is written at once
MAX_LINE_CHARACTERS = 1 << 16


# -- out --------------------------------------------------------------------------------------


def arpa_lines(tables: NGramTables, words: Sequence[str]) -> Iterator[str]:
    """The file as pieces of text. `words` spell the tokens, without any space in them; those of the end of text and of
    the unknown token are `</s>` and `<unk>`."""
    if not tables.chained and tables.order > 1:
        raise UnsupportedError(
            "add-k does not back off to shorter histories, and an ARPA file always does",
            expected="another smoothing",
            advice="train it with --set model.smoothing.kind=kneser-ney",
        )
    extra = [word for word in (BEGIN, END, UNKNOWN) if word not in words]
    counts = [len(tables.levels[0].tokens) + len(extra), *(len(level.tokens) for level in tables.levels[1:])]
    yield "\\data\\\n" + "".join(f"ngram {length}={count}\n" for length, count in enumerate(counts, 1))
    spelled, first = np.array(words, dtype=object), np.array(words, dtype=object)
    if tables.end is not None:
        first[tables.end] = BEGIN
    rows: list[NDArray[np.int64]] = []
    for length, level in enumerate(tables.levels, 1):
        rows = [*(row[level.parents] for row in rows), level.tokens.astype(np.int64)]
        yield f"\n\\{length}-grams:\n"
        if length == 1:
            yield from _extra(tables, extra)
        is_history = length < tables.order
        for start in range(0, len(level.tokens), LINES_PER_PIECE):
            part = slice(start, start + LINES_PER_PIECE)
            columns = (
                [(spelled if n else first)[row[part]] for n, row in enumerate(rows)] if length > 1 else [spelled[part]]
            )
            left = _logarithms(level.backoff[part]) if is_history else None
            if length == 1 and left is not None and tables.end is not None and part.start <= tables.end < part.stop:
                left[tables.end - start] = 0.0  # it is written with <s>
            yield _rows(_logarithms(level.probability[part]), columns, left)
    yield "\n\\end\\\n"


def _extra(tables: NGramTables, missing: Sequence[str]) -> Iterator[str]:
    """Words that other programs expect and that are no tokens of their own."""
    for word in missing:
        left = 0.0
        if word == BEGIN and tables.end is not None and tables.order > 1:
            left = float(_logarithms(tables.levels[0].backoff[[tables.end]])[0])
        yield f"{LOG_OF_ZERO:g}\t{word}" + (f"\t{left:.9g}\n" if tables.order > 1 else "\n")


def _logarithms(values: Floats) -> Floats:
    return np.log10(values, out=np.full(len(values), LOG_OF_ZERO), where=values > 0)


def _rows(logarithms: Floats, columns: Sequence[NDArray[np.object_]], left: Floats | None) -> str:
    words = map(" ".join, zip(*columns, strict=True))
    if left is None:
        return "".join(f"{p:.9g}\t{ngram}\n" for p, ngram in zip(logarithms.tolist(), words, strict=True))
    rows = zip(logarithms.tolist(), words, left.tolist(), strict=True)
    return "".join(f"{p:.9g}\t{ngram}\t{b:.9g}\n" for p, ngram, b in rows)


# -- in ---------------------------------------------------------------------------------------


class Arpa(NamedTuple):
    """What a file holds: `words` by token, and the tables; `end` and `unknown` are tokens."""

    words: list[str]
    tables: NGramTables
    end: int
    unknown: int | None


def read_arpa(path: Path, words: Sequence[str] | None = None) -> Arpa:
    """Read and check a file; `words` are those of a known vocabulary, else they are those of the file in their order.

    Without a vocabulary, `</s>` and `<unk>` are there also if the file lacks them: impossible, then.
    """
    try:
        with path.open(encoding="utf-8", newline="\n") as file:
            return _Reader(path, file).read(words)
    except UnicodeDecodeError:
        raise DataError(f"{path} is not UTF-8 text", expected="an ARPA file") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None


class _Reader:
    """Reads a file line by line; errors name the line."""

    def __init__(self, path: Path, file: IO[str]) -> None:
        self.path, self.number = path, 0
        self.lines = self._lines(file)

    def _lines(self, file: IO[str]) -> Iterator[str]:
        while line := file.readline(MAX_LINE_CHARACTERS):
            self.number += 1
            if len(line) == MAX_LINE_CHARACTERS:
                raise self.error("is longer than any n-gram", "an ARPA file")
            if stripped := line.strip(" \t\r\n"):
                yield stripped

    def error(self, what: str, expected: str) -> DataError:
        return DataError(f"{self.path}, line {self.number}: {what}", expected=expected)

    def read(self, words: Sequence[str] | None) -> Arpa:
        counts = self._counts()
        names, first = self._single(counts[0], len(counts), words)
        levels, numbers = [first], {word: number for number, word in enumerate(names) if word}
        end = numbers.pop(END)
        for length in range(2, len(counts) + 1):
            kinds = [numbers | {BEGIN: end}, *[numbers] * (length - 2), numbers | {END: end}]
            levels.append(self._longer(levels, counts[length - 1], kinds, is_history=length < len(counts)))
        if next(self.lines, "") != "\\end\\":
            raise self.error("the file ends too early, or continues too long", "\\end\\ after the last n-gram")
        return Arpa(names, NGramTables([_powers(level) for level in levels], end), end, numbers.get(UNKNOWN))

    def _counts(self) -> list[int]:
        for line in self.lines:
            if line == "\\data\\":
                break
            if self.number > 100:
                raise self.error("there is no \\data\\ yet", "an ARPA file, or vectors as word2vec writes them")
        else:
            raise self.error("there is no \\data\\", "an ARPA file, or vectors as word2vec writes them")
        counts: list[int] = []
        for line in self.lines:
            if line == "\\1-grams:":
                break
            match = re.fullmatch(r"ngram\s+(\d{1,3})\s*=\s*(\d{1,12})", line)
            if match is None or int(match[1]) != len(counts) + 1:
                raise self.error(f"{line[:40]!r}", f"ngram {len(counts) + 1}=NUMBER, or \\1-grams:")
            counts.append(int(match[2]))
        if not counts or not counts[0] or len(counts) > MAX_ORDER:
            raise self.error(f"n-grams of {len(counts)} lengths", f"1 to {MAX_ORDER}, and some single words")
        return counts

    def _rows(self, length: int, count: int, *, is_history: bool) -> Iterator[tuple[list[str], float, float]]:
        """The words of each n-gram of a length, and its two logarithms; nan: there is none."""
        if length > 1 and (line := next(self.lines, "the end")) != f"\\{length}-grams:":
            raise self.error(f"{line[:40]!r}", f"\\{length}-grams: after the {length - 1}-grams that \\data\\ promises")
        for done in range(count):
            line = next(self.lines, "\\")
            if line.startswith("\\") and "\t" not in line:
                raise self.error(f"{done} {length}-grams", f"{count}, as \\data\\ says")
            fields = [field for field in line.replace("\t", " ").split(" ") if field]
            if len(fields) != length + 1 and not (is_history and len(fields) == length + 2):
                raise self.error(f"{line[:60]!r}", f"a number, {length} words" + " and a number" * is_history)
            left = self._number(fields[-1]) if len(fields) == length + 2 else math.nan
            yield fields[1 : length + 1], self._number(fields[0], most=MAX_ROUNDING), left

    def _number(self, text: str, most: float = 99.0) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if math.isnan(value) or value > most or value == math.inf:
            raise self.error(f"{text[:40]!r}", "a logarithm to base 10" + " of a probability: at most 0" * (most < 1))
        return max(value, LOG_OF_ZERO)

    def _single(self, count: int, order: int, words: Sequence[str] | None) -> tuple[list[str], Level]:
        """The words of all tokens, and the first level."""
        given: dict[str, tuple[float, float]] = {}
        for (word,), logarithm, left in self._rows(1, count, is_history=order > 1):
            if word in given:
                raise self.error(f"the word {word[:40]!r} is there twice", "each once")
            given[word] = logarithm, left
        names = list(words) if words is not None else [word for word in given if word != BEGIN]
        if words is None:
            names += [word for word in (END, UNKNOWN) if word not in given]
        strange = next((word for word in given if word not in {*names, BEGIN, UNKNOWN}), None) if words else None
        if strange is not None:
            raise self.error(f"the word {strange[:40]!r} is no token of the tokenizer beside it", "the same words")
        silent = LOG_OF_ZERO, math.nan
        probability = np.array([given.get(name, silent)[0] for name in names])
        backoff = np.array([given.get(BEGIN if name == END else name, silent)[1] for name in names])
        whole = np.array([0, len(names)], dtype=np.int32)
        return names, Level(
            np.arange(len(names), dtype=np.int32), whole, probability, backoff if order > 1 else np.empty(0)
        )

    def _longer(
        self, levels: Sequence[Level], count: int, kinds: Sequence[Mapping[str, int]], *, is_history: bool
    ) -> Level:
        """The next level: n-grams found by their histories, and put in order."""
        length, size = len(kinds), len(levels[0].tokens)
        flat: list[int] = []
        numbers: list[tuple[float, float]] = []
        for words, logarithm, left in self._rows(length, count, is_history=is_history):
            for known, word in zip(kinds, words, strict=True):
                if word not in known:
                    raise self.error(f"{word[:40]!r} is not allowed there, or is none of the 1-grams", "a known word")
                flat.append(known[word])
            numbers.append((logarithm, left))
        rows = np.array(flat, dtype=np.int64).reshape(-1, length)
        places = rows[:, 0]
        for level, column in zip(levels[1:], rows.T[1:-1], strict=True):
            places = level.find(places, column)
        if (places < 0).any():
            what = f"{int((places < 0).sum())} {length}-grams begin with words that are no {length - 1}-gram"
            raise self.error(what, "every n-gram without its last word among the shorter ones")
        silent = int(np.isnan(levels[-1].backoff[np.unique(places)]).sum())
        if silent:
            what = f"{silent} {length - 1}-grams begin longer ones and have no backoff"
            raise self.error(what, "a second number, the logarithm of what is left for other words")
        keys = places * size + rows[:, -1]
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        if (keys[1:] == keys[:-1]).any():
            raise self.error(f"some {length}-grams are there twice", "each once")
        starts = np.searchsorted(keys, np.arange(len(levels[-1].tokens) + 1) * size).astype(np.int32)
        logarithms, left_over = np.array(numbers).reshape(-1, 2)[order].T
        tokens = (keys % size).astype(np.int32)
        return Level(tokens, starts, logarithms.copy(), left_over.copy() if is_history else np.empty(0))


def _powers(level: Level) -> Level:
    """From logarithms; a history that begins nothing leaves everything to the shorter one."""

    def power(values: Floats) -> Floats:
        return np.where(values <= LOG_OF_ZERO, 0.0, 10.0 ** np.nan_to_num(values, nan=0.0))

    return Level(level.tokens, level.starts, np.minimum(power(level.probability), 1.0), power(level.backoff))


def spelled(names: Iterable[str], end: int, unknown: int | None) -> list[str]:
    """Names of tokens as an ARPA file can hold them: no spaces, none that means something else there.

    A space, a control character and `%` are written as their UTF-8 bytes, `%20`; an id without a token is `%#7`.
    """
    result = []
    for number, name in enumerate(names):
        if number == end:
            result.append(END)
        elif number == unknown:
            result.append(UNKNOWN)
        elif not name:
            result.append(f"%#{number}")
        else:
            word = "".join(_escaped(c) if c == "%" or c.isspace() or not c.isprintable() else c for c in name)
            result.append("%3C" + word[1:] if word in (BEGIN, END, UNKNOWN) else word)
    return result


def _escaped(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode())


def difference(ours: NGramTables, theirs: NGramTables) -> float:
    """The largest difference of any logarithm of a probability; one that is 0 must be 0."""
    largest = 0.0
    for mine, other in zip(ours.levels, theirs.levels, strict=True):
        if not np.array_equal(mine.tokens, other.tokens) or not np.array_equal(
            mine.probability > 0, other.probability > 0
        ):
            raise DataError("the file does not give the same n-grams back", advice="please report this")
        there = mine.probability > 0
        logs = np.log10(mine.probability[there]) - np.log10(other.probability[there])
        largest = max(largest, float(np.abs(logs).max(initial=0.0)))
    return largest


def imported_model(found: Arpa) -> NGram:
    """The model of such a file."""
    size, order = found.tables.vocab_size, found.tables.order
    config = NGramConfig(vocab_size=size, order=order, smoothing=ImportedConfig(), end=found.end)
    return config.with_tables(found.tables)
