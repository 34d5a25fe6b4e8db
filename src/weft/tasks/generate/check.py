"""What a text is like before anything learns from it: how much, how repetitive, and whether its parts overlap.

The text is read as a stream, and only hashes of its lines are kept (`overlap`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from weft.tasks.generate.overlap import LONG, LineSample, leak_warning, lines_of, repetition_warning
from weft.tasks.sources import DataConfig, read_source
from weft.tasks.vocabulary import tokenizer_fields
from weft.text import Corpus, TokenizerConfig

SAMPLE = 1_000_000  # characters that words and sub-words are counted on
LITTLE = 10_000  # characters
Progress = Callable[[int, int], None]
"""Told how many characters of how many are done."""


@dataclass
class TextStatistics:
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
    train: TextStatistics
    validation: TextStatistics
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
    train = TextStatistics()
    for line in lines_of(_counted(source.train, train, told, sample)):
        (long if len(line) >= LONG else short).add(line)
    held_out = TextStatistics()
    leaked, compared = long.share_seen(lines_of(_counted(source.validation, held_out, told)))
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
        leaked=leaked,
        compared=compared,
        one_in=max(short.one_in, long.one_in),
        tokens=tokens,
        exact=tuple(tokens) if sample.is_whole else ("characters", "bytes"),
    )
    found.warnings += _warnings(found)
    return found


def _counted(
    part: Corpus, counts: TextStatistics, told: _Progress, sample: _Sample | None = None
) -> Iterator[tuple[str, bool]]:
    """The pieces of a part, with whether a document ends there; `counts` is filled on the way."""
    begun = False  # a line that is not over yet
    for piece, ended in part.marked_pieces():
        counts.characters += len(piece)
        counts.bytes += len(piece.encode("utf-8", "surrogatepass"))
        counts.replaced += piece.count("\ufffd")
        begun = not piece.endswith("\n")
        counts.lines += piece.count("\n") + (ended and begun)
        counts.documents += ended
        begun = begun and not ended
        told.add(len(piece))
        if sample is not None:
            sample.add(piece)
        yield piece, ended
    counts.lines += begun
    counts.open_end = begun


class _Sample:
    """Pieces from everywhere in the text, up to `SAMPLE` characters together; all of it if it is short."""

    def __init__(self, characters: int, piece: int = 1 << 20) -> None:
        self.is_whole = characters <= SAMPLE
        pieces = characters // piece + 1
        self.share = 1.0 if self.is_whole else SAMPLE / pieces / piece
        self.pieces: list[str] = []

    def add(self, piece: str) -> None:
        self.pieces.append(piece if self.is_whole else piece[: int(self.share * len(piece))])

    def tokens(self, part: TextStatistics) -> dict[str, int]:
        """How many words and sub-words the part is, by tokenizers made from the sample."""
        sampled = sum(map(len, self.pieces))
        found = {}
        for kind in ("words", "bpe"):
            tokenizer = TokenizerConfig.from_config(tokenizer_fields(kind, part.characters)).train(self.pieces)
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
    told += leak_warning(found.leaked) + repetition_warning(found.repeated_long)
    replaced = found.train.replaced + found.validation.replaced
    if replaced:
        told.append(
            f"{replaced:,} characters are U+FFFD, the mark of a failed conversion: make the text again from its source"
        )
    return told
