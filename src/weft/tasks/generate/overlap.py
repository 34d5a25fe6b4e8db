"""Lines that occur in a text more than once, or in two texts at once: what makes a measured loss look too good.

Lines are remembered as hashes; when there are too many of them, only those whose hash falls into an ever smaller
part of all hashes are kept. A line is then remembered with all its copies or not at all, so that the shares stay
right on average.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from weft.tasks.sources import Source

MIN_LINE_CHARACTERS = 40  # characters; shorter lines (names, braces, dates) occur in many texts by chance
MAX_LINES_IN_MEMORY = 1 << 20  # different lines remembered of each kind, about 100 MB
MAX_LINE_CHARACTERS = 1 << 20  # characters; a longer line is compared in parts
MAX_REPEATED_SHARE, MAX_LEAKED_SHARE = 0.2, 0.05
MAX_QUICK_TRAIN_CHARACTERS, MAX_QUICK_VALIDATION_CHARACTERS = (
    20_000_000,
    5_000_000,
)  # characters that a look before training reads at most


class LineSample:
    """How often lines repeat, from hashes: exact up to `limit` different lines, estimated beyond."""

    def __init__(self, limit: int = MAX_LINES_IN_MEMORY) -> None:
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

    def share_seen(self, lines: Iterable[str]) -> tuple[float | None, int]:
        """Of the long lines, the share that was added, and how many were looked for; None if there were none."""
        found = compared = 0
        for line in lines:
            seen = self.seen(line) if len(line) >= MIN_LINE_CHARACTERS else None
            found += seen is True
            compared += seen is not None
        return found / compared if compared else None, compared

    @property
    def repeated(self) -> float:
        """The share of lines that repeat an earlier one."""
        occurrences = sum(self.counts.values())
        return 1 - len(self.counts) / occurrences if occurrences else 0.0


def line_hash(line: str) -> int:
    """64 bits that are the same in every process."""
    data = line.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def lines_of(pieces: Iterable[tuple[str, bool]]) -> Iterator[str]:
    """The lines that are not blank, without the space around them, from pieces and whether a document ends there."""
    rest = ""  # of the line that is not over yet
    for piece, ended in pieces:
        *full, rest = (rest + piece).split("\n")
        if ended or len(rest) > MAX_LINE_CHARACTERS:
            full, rest = [*full, rest], ""
        yield from (line for line in map(str.strip, full) if line)
    if rest.strip():
        yield rest.strip()


def overlap_warnings(source: Source) -> list[str]:
    """Warnings of a quick look before training: repeated lines, and lines that validation or test share with it."""
    known = LineSample()
    for line in lines_of(source.train.marked_pieces(stop=MAX_QUICK_TRAIN_CHARACTERS)):
        if len(line) >= MIN_LINE_CHARACTERS:
            known.add(line)
    told = []
    for name, part in (("validation", source.validation), ("test", source.test)):
        if part is not None:
            leaked, _ = known.share_seen(lines_of(part.marked_pieces(stop=MAX_QUICK_VALIDATION_CHARACTERS)))
            told += leak_warning(leaked, name)
    return told + repetition_warning(known.repeated)


def leak_warning(leaked: float | None, name: str = "validation") -> list[str]:
    """A sentence if too many lines of the text `name` were seen, else none."""
    if leaked is None or leaked <= MAX_LEAKED_SHARE:
        return []
    return [
        f"{leaked:.0%} of the long {name} lines also occur in the training part: the {name} loss will look better "
        f"than it is; remove the copies, or give other text with --{'test' if name == 'test' else 'validation'}"
    ]


def repetition_warning(repeated: float) -> list[str]:
    """A sentence if too many long lines repeat an earlier one, else none."""
    if repeated <= MAX_REPEATED_SHARE:
        return []
    return [f"{repeated:.0%} of the long lines repeat an earlier one: a model will learn them by heart"]
