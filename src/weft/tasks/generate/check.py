"""What a text is like before anything learns from it: how much, how repetitive, and whether its parts overlap.

The text is read as a stream, and only hashes of its lines are kept (`overlap`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from weft.data.sides import are_two_sides
from weft.tasks.data_check import CheckRequest, DataCheck, Progress
from weft.tasks.findings import Facts, Findings
from weft.tasks.generate.overlap import MIN_LINE_CHARACTERS, LineSample, leak_warning, lines_of, repetition_warning
from weft.tasks.sources import DEMO, DataConfig, are_tables, read_source
from weft.tasks.vocabulary import tokenizer_fields
from weft.text import Corpus, TokenizerConfig

MAX_SAMPLE_CHARACTERS = 1_000_000  # characters that words and sub-words are counted on
RECOMMENDED_CHARACTERS = 10_000  # characters


@dataclass
class TextStatistics:
    """What one pass over a part of the text counted."""

    characters: int = 0
    bytes: int = 0
    lines: int = 0
    documents: int = 0  # ends of documents in it, if there are several
    replaced: int = 0  # U+FFFD: what a careless conversion leaves behind
    open_end: bool = False  # its last line continues in another piece

    def to_dict(self) -> dict[str, int]:
        return {"characters": self.characters, "bytes": self.bytes, "lines": self.lines}


def check_text(asked: CheckRequest) -> Findings:
    """Read texts as training would, and count; what cannot be read as text is a `DataError`.

    Shares are between 0 and 1, and None where there was nothing to compare.
    """
    source = read_source(DataConfig(train=tuple(asked.train), validation=tuple(asked.validation)))
    size = source.config.characters
    split = not asked.validation
    told = _Progress(asked.progress, int(size / (1 - source.config.validation_share)) if split else size)
    sample = _Sample(size)
    short, long = LineSample(), LineSample()
    train, validation = TextStatistics(), TextStatistics()
    for line in lines_of(_counted(source.train, train, told, sample)):
        (long if len(line) >= MIN_LINE_CHARACTERS else short).add(line)
    leaked, compared = long.share_seen(lines_of(_counted(source.validation, validation, told)))
    tokens = {"characters": train.characters + train.documents, "bytes": train.bytes + train.documents}
    tokens |= sample.tokens(train)
    filled = short.total + long.total
    documents = [*source.train.documents, *(() if split else source.validation.documents)]
    characters = train.characters + validation.characters
    facts: Facts = {
        "files": [document.name for document in documents],
        "characters": characters,
        "bytes": train.bytes + validation.bytes,
        "lines": train.lines + validation.lines - (split and train.open_end),
        "validation_share": validation.characters / characters,
        "repeated_lines": (short.total * short.repeated + long.total * long.repeated) / max(1, filled),
        "repeated_long_lines": long.repeated,
        "leakage": leaked,
        "compared_lines": compared,  # long validation lines that were looked for
        "lines_remembered_one_in": max(short.one_in, long.one_in),  # of so many different lines, one was remembered
        "tokens": tokens,
        "exact_tokens": list(tokens) if sample.is_whole else ["characters", "bytes"],  # counted, not estimated
    }
    parts = {"train": train.to_dict(), "validation": validation.to_dict()}
    warnings = list(_warnings(facts, train.replaced + validation.replaced))
    return Findings(parts, facts, list(_sentences(facts, parts["validation"])), warnings=warnings)


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
    """Pieces from everywhere in the text, together at most `MAX_SAMPLE_CHARACTERS`; all of it if it is short."""

    def __init__(self, characters: int, piece: int = 1 << 20) -> None:
        self.is_whole = characters <= MAX_SAMPLE_CHARACTERS
        pieces = characters // piece + 1
        self.share = 1.0 if self.is_whole else MAX_SAMPLE_CHARACTERS / pieces / piece
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


# -- telling ----------------------------------------------------------------------------------


def _sentences(facts: Facts, validation: Facts) -> Iterator[str]:
    files, leaked = facts["files"], facts["leakage"]
    one_in = facts["lines_remembered_one_in"]
    about = "" if one_in == 1 else f" (estimated from one line in {one_in})"
    yield f"{_count(len(files), 'file')}: {', '.join(files[:3])}{' …' if len(files) > 3 else ''}"
    yield (
        f"{facts['characters']:,} characters, {facts['bytes']:,} bytes, {_count(facts['lines'], 'line')}; "
        "all of it is valid text."
    )
    yield (
        f"Validation: {validation['characters']:,} characters ({facts['validation_share']:.1%}), "
        f"{_count(validation['lines'], 'line')}; all else is learned from."
    )
    yield (
        f"Repeated: {facts['repeated_lines']:.1%} of the lines to learn from repeat an earlier one; "
        f"{facts['repeated_long_lines']:.1%} of those of {MIN_LINE_CHARACTERS} characters or more{about}."
    )
    if leaked is None:
        yield f"Leakage: no validation line has {MIN_LINE_CHARACTERS} characters, so there is nothing to compare."
    else:
        compared = _count(facts["compared_lines"], "validation line")
        yield (
            f"Leakage: of {compared} of {MIN_LINE_CHARACTERS} characters or more, "
            f"{leaked:.1%} also occur in the training part{about}."
        )
    exact = facts["exact_tokens"]
    counts = (
        f"{n:,} as {kind}" if kind in exact else f"about {_rounded(n):,} as {kind}"
        for kind, n in facts["tokens"].items()
    )
    yield f"Tokens to learn from: {', '.join(counts)}."


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _rounded(estimate: int) -> int:
    """To two digits."""
    return round(estimate, 2 - len(str(estimate)))


def _warnings(facts: Facts, replaced: int) -> Iterator[str]:
    """What will probably spoil the result, and what to do."""
    if facts["characters"] < RECOMMENDED_CHARACTERS:
        yield (
            f"only {facts['characters']:,} characters: too little to learn a language from; "
            f"{RECOMMENDED_CHARACTERS:,} are a start, a million is better"
        )
    yield from leak_warning(facts["leakage"])
    yield from repetition_warning(facts["repeated_long_lines"])
    if replaced:
        yield (
            f"{replaced:,} characters are U+FFFD, the mark of a failed conversion: make the text again from its source"
        )


def are_texts(paths: Sequence[str], columns: Collection[str]) -> bool:
    """Anything that is no table and does not look like the two sides of pairs, and of which no column was named."""
    return list(paths) == [DEMO] or not (columns or are_tables(paths) or are_two_sides(paths))


TEXTS = DataCheck(
    things="a text",
    recognises=are_texts,
    check=check_text,
    options=(),
    instead="a table: a .csv, .tsv or .jsonl file",
    turn=2,
)
DATA_CHECKS = (TEXTS,)
