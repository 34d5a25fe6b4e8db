"""A corpus: documents in order, read as one long text that need not fit into memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from weft.errors import ConfigError, DataError
from weft.text.cutting import cut_point
from weft.text.files import Document, find_documents
from weft.text.spelling import utf8


class _Facts(NamedTuple):
    """What one pass over the text finds out."""

    characters: int
    bytes: int
    fingerprint: str


class Corpus:
    """The characters [start, stop) of the documents, one after the other.

    Nothing is kept but the place: each use reads the files again, as a stream.
    """

    def __init__(self, documents: Sequence[Document], *, start: int = 0, stop: int | None = None) -> None:
        if not documents:
            raise DataError("no documents", expected="at least one text")
        self.documents = tuple(documents)
        self.start = start
        self.stop = stop

    @classmethod
    def of_files(cls, *paths: str | Path) -> Corpus:
        """The text files that are meant: files, or folders of them."""
        return cls(find_documents(paths))

    @classmethod
    def of_text(cls, *texts: str, name: str = "text") -> Corpus:
        """Strings that are already there, each a document."""
        return cls([Document.of_text(text, name) for text in texts])

    def __repr__(self) -> str:
        part = "" if self.start == 0 and self.stop is None else f", characters {self.start} to {self.stop}"
        names = [document.name for document in self.documents]
        shown = names[0] if len(names) == 1 else f"{len(names)} documents from {names[0]} to {names[-1]}"
        return f"Corpus({shown}{part})"

    # -- what one pass tells ------------------------------------------------------------------

    @property
    def characters(self) -> int:
        """How many characters there are."""
        return self._facts.characters

    @property
    def bytes(self) -> int:
        """How many bytes they are in UTF-8."""
        return self._facts.bytes

    @property
    def fingerprint(self) -> str:
        """A sha256 of the text and of where documents end."""
        return self._facts.fingerprint

    @cached_property
    def _facts(self) -> _Facts:
        whole, document = hashlib.sha256(), hashlib.sha256()
        characters = size = 0
        blank = True
        for piece, ended in self.marked_pieces():
            data = utf8(piece)
            document.update(data)
            characters += len(piece)
            size += len(data)
            blank = blank and piece.isspace()
            if ended:
                whole.update(document.digest())
                document = hashlib.sha256()
        whole.update(document.digest())
        if blank and self.start == 0 and self.stop is None:
            names = ", ".join(document.name for document in self.documents[:3])
            what = "nothing but spaces" if characters else "no text"
            raise DataError(f"there is {what} in {names}", expected="text to learn from")
        return _Facts(characters, size, whole.hexdigest())

    # -- reading ------------------------------------------------------------------------------

    def pieces(self, start: int = 0, stop: int | None = None, size: int = 1 << 20) -> Iterator[str]:
        """The characters [start, stop) as pieces of about `size`, cut where a tokenizer cannot notice."""
        for piece, _ in self.marked_pieces(start, stop, size):
            yield piece

    def marked_pieces(self, start: int = 0, stop: int | None = None, size: int = 1 << 20) -> Iterator[tuple[str, bool]]:
        """Pieces as above, each with whether one of several documents ends after it.

        A corpus of one document never says so: there is nothing to be told apart.
        """
        first = self.start + start
        last = self.stop if stop is None else self.start + stop
        last = last if self.stop is None or last is None else min(last, self.stop)
        several = len(self.documents) > 1
        passed = 0
        for document in self.documents:
            if last is not None and passed >= last:
                return
            reader = _Reader(document, first - passed, None if last is None else last - passed)
            for piece, ended in _cut(reader, size):
                yield piece, ended and several
            passed += reader.passed

    def split(self, share: float) -> tuple[Corpus, Corpus]:
        """The beginning to learn from, and the last `share` of the characters to judge by."""
        if not 0 <= share < 1:
            raise ConfigError(f"share = {share!r}", expected="at least 0 and less than 1")
        total = self.characters
        cut = int((1 - share) * total)
        if share and not 0 < cut < total:
            raise DataError(f"only {total} characters: too few to hold out a share of {share:g}")
        return self._part(0, cut), self._part(cut, total)

    def _part(self, start: int, stop: int) -> Corpus:
        return Corpus(self.documents, start=self.start + start, stop=self.start + stop)


class _Reader:
    """The characters [start, stop) of one document as they come; counts what went by, and sees the end."""

    def __init__(self, document: Document, start: int, stop: int | None) -> None:
        self.document = document
        self.start = max(start, 0)
        self.stop = stop
        self.passed = 0
        self.ended = False

    def __iter__(self) -> Iterator[str]:
        for text in self.document.read():
            here = self.passed
            if self.stop is not None and here >= self.stop:
                return
            self.passed += len(text)
            part = text[max(self.start - here, 0) : None if self.stop is None else self.stop - here]
            if part:
                yield part
            if self.stop is not None and self.passed > self.stop:
                return
        self.ended = True


def _cut(reader: _Reader, size: int) -> Iterator[tuple[str, bool]]:
    """Join what the reader gives and cut it again at good places; the last piece knows if the document ended."""
    buffer = ""
    for text in reader:
        buffer += text
        place = 0
        while len(buffer) - place > size + 1:
            end = cut_point(buffer, place, place + size)
            yield buffer[place:end], False
            place = end
        buffer = buffer[place:]
    if buffer:
        yield buffer, reader.ended
