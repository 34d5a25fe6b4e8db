"""What every verb that uses a run shares: opening it, and texts from arguments, files or stdin into files or stdout."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TextIO, TypeVar

from weft.errors import ConfigError, DataError

if TYPE_CHECKING:
    from weft.tasks import Run

T = TypeVar("T")


def open_run(path: str, threads: int | None = None) -> Run:
    """The run, and as many threads as asked for."""
    import torch

    from weft.tasks import load
    from weft.tasks.environment import usual_threads

    if threads is not None and threads < 1:
        raise ConfigError(f"threads = {threads}", expected="more than 0")
    torch.set_num_threads(threads or usual_threads())
    return load(path)


def texts_from(words: list[str] | None, path: str | None, files: ExitStack) -> Iterator[str] | None:
    """Texts as a stream: the arguments (- is all of stdin), or the lines of a file; None: nothing was given."""
    if words and path is not None:
        raise ConfigError("texts and --input", expected="one of them")
    if path is not None:
        return _lines(sys.stdin if path == "-" else files.enter_context(open_file(path, "r")), path)
    if words:
        return (sys.stdin.read() if word == "-" else word for word in words)
    return None if sys.stdin.isatty() else iter([sys.stdin.read()])


def _lines(file: TextIO, path: str) -> Iterator[str]:
    """Without their ends; what is no text is an error that says where."""
    number = 0
    try:
        for number, line in enumerate(file, 1):
            yield (line.removeprefix("\ufeff") if number == 1 else line).rstrip("\n")
    except UnicodeDecodeError:
        where = "stdin" if path == "-" else path
        raise DataError(f"{where} is not valid UTF-8 near line {number + 1}", expected="a text on each line") from None


def lines_from(words: list[str] | None, path: str | None, files: ExitStack) -> Iterator[str]:
    """The same where stdin is many texts, a line each, and something must be given."""
    if words is not None and list(words) == ["-"] and path is None:
        words, path = None, "-"
    found = texts_from(words, path, files) if words or path is not None else None
    if found is None and not sys.stdin.isatty():
        return texts_from(None, "-", files) or iter(())
    if found is None:
        raise ConfigError("no text was given", expected="texts, --input FILE, or - for stdin")
    return found


def output_to(path: str | None, files: ExitStack) -> TextIO:
    """A new file, or stdout; a file into which nothing could be written does not stay."""
    if path is None:
        return sys.stdout
    file = open_file(path, "x")

    def close(kind: object, *_: object) -> None:
        file.close()
        if kind is not None and not Path(path).stat().st_size:
            Path(path).unlink()

    files.push(close)
    return file


def check_free(path: str) -> None:
    """Refuse a place for a new file before any work is done for it."""
    if Path(path).exists():
        raise DataError(f"{path} is there already", advice="choose another --output")
    if not Path(path).parent.is_dir():
        raise DataError(f"{path} cannot be opened: there is no folder {Path(path).parent}")


def open_file(path: str, mode: Literal["r", "x"]) -> TextIO:
    """A text file to read, or one that must not be there yet."""
    try:
        return Path(path).open(mode, encoding="utf-8", newline=None if mode == "r" else "\n")
    except FileExistsError:
        raise DataError(f"{path} is there already", advice="choose another --output") from None
    except OSError as error:
        raise DataError(f"{path} cannot be opened: {error.strerror}") from None


def groups(stream: Iterator[T], size: int) -> Iterator[list[T]]:
    """What comes, so many at a time."""
    while group := list(itertools.islice(stream, size)):
        yield group
