"""Text files as people have them: found, recognised by content, and read as a stream of clean text.

Clean means: decoded strictly, the byte-order mark dropped, and every line ending a plain newline. What is not
text is refused with its name, and never guessed at or repaired in silence.
"""

from __future__ import annotations

import codecs
import difflib
import gzip
import io
import logging
import os
import stat
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from weft.errors import DataError
from weft.text.signatures import describe

log = logging.getLogger(__name__)

CHUNK = 1 << 20
SUFFIXES = (".txt", ".txt.gz")
HARMLESS = 1 << 24  # bytes that a gzip file may unpack to, whatever its size
TIMES = 200  # beyond, not more than so many times what was read of it: text shrinks to a third, a bomb to a thousandth
MARKS = (  # longest first: the mark of UTF-32 begins with the one of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True)
class Document:
    """A text with a name: a file that is read when needed, or a string."""

    name: str
    path: Path | None = None
    text: str | None = None

    @classmethod
    def of_file(cls, path: str | Path) -> Document:
        """The text in a file; it is not opened yet."""
        return cls(name=str(path), path=Path(path))

    @classmethod
    def of_text(cls, text: str, name: str = "text") -> Document:
        """A string that is already there."""
        return cls(name=name, text=text)

    def __repr__(self) -> str:
        return f"Document({self.name!r})"

    def read(self, *, translate: bool = True) -> Iterator[str]:
        """The clean text, a megabyte or so at a time; none of the pieces is empty.

        Without `translate`, line endings stay as they are; none of them is cut in two.
        """
        if self.path is not None:
            yield from _read_file(self.path, translate)
            return
        text = (self.text or "").removeprefix("\ufeff")
        if translate:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        for start in range(0, len(text), CHUNK):
            yield text[start : start + CHUNK]


# -- finding ----------------------------------------------------------------------------------


def find_documents(paths: Sequence[str | Path]) -> list[Document]:
    """The text files that are meant: files as given, folders searched for .txt and .txt.gz, in sorted order.

    Each file is opened for a moment, to tell early that it is missing, empty or no text.
    """
    found: dict[Path, Document] = {}
    for given in paths:
        path = Path(given)
        files = _in_folder(path) if os.path.isdir(path) else [path]
        for file in files:
            if not os.path.exists(file):  # which also answers for names that no system allows
                raise _missing(file)
            found.setdefault(file.resolve(), Document.of_file(file))
    for document in found.values():
        _check(Path(document.name))
    if not found:
        raise DataError("no files given", expected="a text file, several, or a folder of them")
    return list(found.values())


def _in_folder(folder: Path) -> list[Path]:
    """All texts below a folder; hidden files and folders are skipped, and so are empty files."""
    texts: list[Path] = []
    for base, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        texts += [Path(base, n) for n in sorted(names) if not n.startswith(".") and n.lower().endswith(SUFFIXES)]
    filled = [path for path in texts if path.exists() and path.stat().st_size]
    if len(filled) < len(texts):
        log.warning("%d empty files in %s are left out", len(texts) - len(filled), folder)
    if not filled:
        raise DataError(
            f"{folder} is a folder with no text in it",
            expected="files that end in .txt or .txt.gz",
            advice="other files can be named one by one",
        )
    return filled


def _missing(path: Path) -> DataError:
    folder = path.parent
    if len(str(path)) > 500 or not str(path).isprintable():
        return DataError(f"{str(path)[:60]!r} … is no name of a file", expected="a path to a text file or a folder")
    if not folder.is_dir():
        return DataError(f"{path} does not exist", advice=f"there is no folder {folder} either")
    try:
        names = sorted(item.name for item in folder.iterdir())
    except OSError:
        names = []
    close = difflib.get_close_matches(path.name, names, n=1, cutoff=0.6)
    return DataError(f"{path} does not exist", advice=f"did you mean {str(folder / close[0])!r}?" if close else "")


def _check(path: Path) -> None:
    """Refuse what cannot be read as text, judging by the file and its first bytes."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise DataError(f"{path} is a device or a pipe", expected="a file: it is read more than once")
        with _open(path) as file:
            head = _read(path, file, 4096)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    if not head:
        raise DataError(f"{path} is empty", expected="a file with text in it")
    _refuse_binary(path, head)


# -- reading ----------------------------------------------------------------------------------


def _open(path: Path) -> io.BufferedIOBase:
    """A file, unpacked if it is gzip by its first bytes."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if packed else path.open("rb")


def _read(path: Path, file: io.BufferedIOBase, size: int) -> bytes:
    try:
        data = file.read(size)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise DataError(f"{path} is a damaged gzip file", advice="copy or download it again") from None
    if isinstance(file, gzip.GzipFile):
        _refuse_bomb(path, file)
    return data


def _refuse_bomb(path: Path, file: gzip.GzipFile) -> None:
    """A small file that unpacks to a huge one is refused while little of it is unpacked."""
    unpacked, packed = file.tell(), file.fileobj.tell()  # type: ignore[union-attr]
    if unpacked > max(HARMLESS, TIMES * packed):
        given = f"{path} unpacks to more than {TIMES} times its size"
        raise DataError(given, expected="text", advice="if it is meant like this, unpack it first: gunzip")


def _refuse_binary(path: Path, head: bytes) -> None:
    if any(head.startswith(mark) for mark, _ in MARKS):
        return
    what = describe(head)
    if what:
        raise DataError(f"{path} is {what}", expected="plain text", advice="save or export it as UTF-8 text")
    if b"\0" in head:
        raise _null_byte(path, head, 0)


def _null_byte(path: Path, data: bytes, offset: int) -> DataError:
    """NUL bytes mean binary data, or UTF-16 that does not say so."""
    even, odd = data[0::2], data[1::2]
    for name, rare, common in (("UTF-16LE", even, odd), ("UTF-16BE", odd, even)):
        if common.count(0) > 0.3 * len(common) and rare.count(0) < 0.05 * len(rare):
            given = f"{path} looks like {name} without a byte-order mark"
            return DataError(given, expected="UTF-8", advice=f"convert it: iconv -f {name} -t UTF-8 OLD > NEW")
    place = offset + data.index(0)
    return DataError(f"{path} is a binary file (a NUL at byte {place})", expected="plain text")


def _read_file(path: Path, translate: bool) -> Iterator[str]:
    """Decode strictly, piece by piece; `translate` makes every line ending a newline."""
    try:
        with _open(path) as file:
            chunk = _read(path, file, CHUNK)
            _refuse_binary(path, chunk[:4096])
            mark, encoding = next((m for m in MARKS if chunk.startswith(m[0])), (b"", "utf-8"))
            decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(encoding)(), translate)
            offset, chunk = len(mark), chunk[len(mark) :]
            while chunk:
                offset += len(chunk)
                text = _decode(path, decoder, chunk, offset, encoding)
                if "\0" in text:
                    raise _null_byte(path, chunk if encoding == "utf-8" else b"\0", offset - len(chunk))
                if text:
                    yield text
                chunk = _read(path, file, CHUNK)
            rest = _decode(path, decoder, b"", offset, encoding)
            if rest:
                yield rest
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None


def _decode(path: Path, decoder: io.IncrementalNewlineDecoder, chunk: bytes, offset: int, encoding: str) -> str:
    """Decode bytes that end at `offset`; an empty chunk is the end of the file."""
    try:
        return decoder.decode(chunk, final=not chunk)
    except UnicodeDecodeError as error:
        data, place = error.object, offset - len(error.object) + error.start
        given = f"{path} is not valid {encoding.upper()} at byte {place}"
        if encoding != "utf-8":
            raise DataError(given, advice="the file is damaged, or its byte-order mark is wrong") from None
        near = bytes(data[max(0, error.start - 32) : error.start + 32])
        raise DataError(given, expected="UTF-8", advice=_other_encoding(near)) from None


def _other_encoding(near: bytes) -> str:
    """What the bytes around the first invalid one suggest."""
    try:
        near.decode("cp1252")
    except UnicodeDecodeError:
        return "find out its encoding and convert it: iconv -f ENCODING -t UTF-8 OLD > NEW"
    return "if it is Western European, convert it: iconv -f WINDOWS-1252 -t UTF-8 OLD > NEW"
