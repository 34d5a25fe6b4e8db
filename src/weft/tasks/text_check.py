"""What a text is like before anything learns from it: how much, how repetitive, and whether its parts overlap.

The text is read as a stream. Lines are remembered as hashes; when there are too many of them, only those whose hash
falls into an ever smaller part of all hashes are kept. A line is then remembered with all its copies or not at all,
so that the shares stay right on average.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from weft.tasks.sources import DataConfig, read_source
from weft.text import Corpus, TokenizerConfig

LONG = 40  # characters; shorter lines (names, braces, dates) stand in many texts by chance
KEPT_LINES = 1 << 20  # different lines remembered of each kind, about 100 MB
LONGEST = 1 << 20  # characters; a longer line is compared in parts
SAMPLE = 1_000_000  # characters that words and sub-words are counted on
LITTLE = 10_000  # characters
MUCH_REPEATED, MUCH_LEAKED = 0.2, 0.05
Progress = Callable[[int, int], None]
"""Told how many characters of how many are done."""


class LineSample:
    """How often lines repeat, from hashes: exact up to `limit` different lines, estimated beyond."""

    def __init__(self, limit: int = KEPT_LINES) -> None:
        self.limit = limit
        self.one_in = 1  # of this many different lines, one is remembered
        self.total = 0
        self.counts: dict[int, int] = {}

    def add(self, line: str) -> None:
        self.total += 1
        number = line_hash(line)
        if number % self.one_in:
            return
        self.counts[number] = self.counts.get(number, 0) + 1
        if len(self.counts) > self.limit:
            self.one_in *= 2
            self.counts = {kept: count for kept, count in self.counts.items() if kept % self.one_in == 0}

    def seen(self, line: str) -> bool | None:
        """Whether the line was added; None for those that are not remembered."""
        number = line_hash(line)
        return None if number % self.one_in else number in self.counts

    @property
    def repeated(self) -> float:
        """The share of lines that repeat an earlier one."""
        occurrences = sum(self.counts.values())
        return 1 - len(self.counts) / occurrences if occurrences else 0.0


def line_hash(line: str) -> int:
    """64 bits that are the same in every process."""
    data = line.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


@dataclass
class Part:
    """What one pass over a part of the text counted."""

    characters: int = 0
    bytes: int = 0
    lines: int = 0
    documents: int = 0  # ends of documents in it, if there are several
    replaced: int = 0  # U+FFFD: what a careless conversion leaves behind
    open_end: bool = False  # its last line goes on elsewhere

    def to_dict(self) -> dict[str, int]:
        return {"characters": self.characters, "bytes": self.bytes, "lines": self.lines}


@dataclass
class TextCheck:
    """The findings; shares are between 0 and 1, and None where there was nothing to compare."""

    files: list[str]
    train: Part
    validation: Part
    lines: int
    repeated: float
    repeated_long: float
    leaked: float | None
    compared: int  # long held-out lines that were looked for
    one_in: int  # of this many different lines, one was remembered
    tokens: dict[str, int]
    exact: tuple[str, ...]  # tokenizers whose tokens were counted, not estimated
    warnings: list[str] = field(default_factory=list)

    @property
    def characters(self) -> int:
        return self.train.characters + self.validation.characters

    @property
    def held_out(self) -> float:
        """The share of the characters that is held out."""
        return self.validation.characters / self.characters

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        return {
            "files": self.files,
            "characters": self.characters,
            "bytes": self.train.bytes + self.validation.bytes,
            "lines": self.lines,
            "train": self.train.to_dict(),
            "validation": self.validation.to_dict(),
            "held_out": self.held_out,
            "repeated_lines": self.repeated,
            "repeated_long_lines": self.repeated_long,
            "leakage": self.leaked,
            "compared_lines": self.compared,
            "lines_remembered_one_in": self.one_in,
            "tokens": self.tokens,
            "exact_tokens": list(self.exact),
            "warnings": self.warnings,
        }


def check_text(
    data: tuple[str, ...], validation: tuple[str, ...] = (), *, progress: Progress | None = None
) -> TextCheck:
    """Read texts as training would, and count; what cannot be read as text is a `DataError`."""
    source = read_source(DataConfig(train=data, validation=validation))
    size = source.config.characters
    whole = None if validation else int(size / (1 - source.config.held_out))  # only known where the text is split
    sample = _Sample(size)
    short, long = LineSample(), LineSample()
    told = _Progress(progress, whole or size)
    train = Part()
    for line in _lines(source.train, train, told, sample):
        (long if len(line) >= LONG else short).add(line)
    held_out = Part()
    leaked = compared = 0
    for line in _lines(source.validation, held_out, told):
        seen = long.seen(line) if len(line) >= LONG else None
        compared += seen is not None
        leaked += seen is True
    tokens = {"characters": train.characters + train.documents, "bytes": train.bytes + train.documents}
    tokens |= sample.tokens(train)
    filled = short.total + long.total
    documents = [*source.train.documents, *(source.validation.documents if validation else ())]
    found = TextCheck(
        files=[document.name for document in documents],
        train=train,
        validation=held_out,
        lines=train.lines + held_out.lines - (not validation and train.open_end),
        repeated=(short.total * short.repeated + long.total * long.repeated) / max(1, filled),
        repeated_long=long.repeated,
        leaked=leaked / compared if compared else None,
        compared=compared,
        one_in=max(short.one_in, long.one_in),
        tokens=tokens,
        exact=tuple(tokens) if sample.is_whole else ("characters", "bytes"),
    )
    found.warnings += _warnings(found)
    return found


def _lines(part: Corpus, counts: Part, told: _Progress, sample: _Sample | None = None) -> Iterator[str]:
    """The lines that are not blank, without the space around them; `counts` is filled on the way."""
    rest, begun = "", False  # of the line that is not over yet; a long one may have been given out in parts
    for piece, ended in part.marked_pieces():
        counts.characters += len(piece)
        counts.bytes += len(piece.encode("utf-8", "surrogatepass"))
        counts.replaced += piece.count("\ufffd")
        counts.lines += piece.count("\n")
        counts.documents += ended
        told.add(len(piece))
        if sample is not None:
            sample.add(piece)
        *full, rest = (rest + piece).split("\n")
        begun = bool(rest) or (begun and not full)
        if ended:
            full, rest = [*full, rest], ""
            counts.lines += begun
            begun = False
        elif len(rest) > LONGEST:
            full, rest = [*full, rest], ""
        yield from (line for line in map(str.strip, full) if line)
    counts.lines += begun
    counts.open_end = begun
    if rest.strip():
        yield rest.strip()


class _Sample:
    """Pieces from everywhere in the text, up to `SAMPLE` characters together; all of it if it is short."""

    def __init__(self, characters: int, piece: int = 1 << 20) -> None:
        self.is_whole = characters <= SAMPLE
        pieces = characters // piece + 1
        self.share = 1.0 if self.is_whole else SAMPLE / pieces / piece
        self.pieces: list[str] = []

    def add(self, piece: str) -> None:
        self.pieces.append(piece if self.is_whole else piece[: int(self.share * len(piece))])

    def tokens(self, part: Part) -> dict[str, int]:
        """How many words and sub-words the part is, by tokenizers made from the sample."""
        from weft.tasks.planning import tokenizer_fields

        sampled = sum(map(len, self.pieces))
        found = {}
        for kind in ("words", "bpe"):
            tokenizer = TokenizerConfig.pick(tokenizer_fields(kind, part.characters)).train(self.pieces)
            count = sum(len(tokenizer.encode(piece)) for piece in self.pieces)
            if not self.is_whole:
                count = round(count * part.characters / max(1, sampled))
            found[kind] = count + part.documents
        return found


class _Progress:
    """Adds up what was read and passes it on."""

    def __init__(self, tell: Progress | None, total: int) -> None:
        self.tell, self.total, self.done = tell, total, 0

    def add(self, characters: int) -> None:
        self.done += characters
        if self.tell is not None:
            self.tell(min(self.done, self.total), self.total)


def _warnings(found: TextCheck) -> list[str]:
    """What will probably spoil the result, and what to do."""
    told = []
    if found.characters < LITTLE:
        told.append(
            f"only {found.characters:,} characters: too little to learn a language from; "
            f"{LITTLE:,} are a start, a million is better"
        )
    if found.leaked is not None and found.leaked > MUCH_LEAKED:
        told.append(
            f"{found.leaked:.0%} of the long held-out lines also stand in the training part: the held-out loss "
            "will look better than it is; remove the copies, or give other text with --validation"
        )
    if found.repeated_long > MUCH_REPEATED:
        told.append(
            f"{found.repeated_long:.0%} of the long lines repeat an earlier one: a model will learn them by heart"
        )
    replaced = found.train.replaced + found.validation.replaced
    if replaced:
        told.append(
            f"{replaced:,} characters are U+FFFD, the mark of a failed conversion: make the text again from its source"
        )
    return told
