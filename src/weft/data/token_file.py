"""A corpus as ids on disk: written once as a stream, then mapped into memory and found again by content.

Two files: `NAME.bin` holds the ids, little-endian and nothing else; `NAME.json` says what they are, and is written
last. A pair that does not fit together is made anew. While they are written they are `NAME.PROCESS.part`.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
import os
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.errors import DataError
from weft.text import Corpus, Tokenizer

log = logging.getLogger(__name__)

FORMAT = 1
PIECE = 1 << 14  # characters; small pieces keep the engine's tables in the processor's cache
A_DAY = 86_400  # seconds
AT_ONCE = 128  # pieces that are tokenised at once, on all cores
Group = tuple[NDArray[np.uint32], int]
Progress = Callable[[int, int], None]
"""Told how many characters of how many are done."""


class TokenFile:
    """The ids of a text, in memory or mapped from disk, and how many bytes of text they stand for."""

    def __init__(self, ids: NDArray[np.unsignedinteger[Any]], bytes: int, path: Path | None = None) -> None:
        self.ids = ids
        self.bytes = bytes
        self.path = path

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        where = f", {self.path}" if self.path else ""
        return f"TokenFile({len(self.ids)} tokens, {self.bytes} bytes of text{where})"


def tokenise(
    corpus: Corpus, tokenizer: Tokenizer, folder: str | Path | None, *, progress: Progress | None = None
) -> TokenFile:
    """The ids of a corpus, with the end-of-text token after each document if there are several.

    With a folder they are kept there, and the same text with the same tokenizer is only done once; without one
    they stay in memory.
    """
    kind = np.dtype("<u2" if tokenizer.vocab_size <= 1 << 16 else "<u4")
    if folder is None:
        groups = [(ids.astype(kind), size) for ids, size in _groups(corpus, tokenizer, progress)]
        ids = np.concatenate([np.empty(0, dtype=kind), *(ids for ids, _ in groups)])
        return TokenFile(ids, sum(size for _, size in groups))
    about = {"format": FORMAT, "corpus": corpus.fingerprint, "tokenizer": tokenizer.fingerprint, "dtype": kind.str}
    name = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:32]
    path = Path(folder) / f"{name}.bin"
    found = _open(path, about)
    if found is None:
        try:
            _write(path, about, _groups(corpus, tokenizer, progress))
        except OSError as error:
            raise DataError(
                f"tokens cannot be written to {folder}: {error.strerror or error}",
                advice="free some space there, or choose another folder",
            ) from None
        found = _open(path, about)
    elif progress is not None:
        progress(corpus.characters, corpus.characters)
    if found is None:
        raise DataError(f"{path} is damaged right after it was written", advice="check the disk")
    return found


def _groups(corpus: Corpus, tokenizer: Tokenizer, progress: Progress | None) -> Iterator[Group]:
    """Ids, and the bytes of text they stand for, some megabytes at a time."""
    done, total = 0, corpus.characters
    marked = corpus.marked_pieces(size=PIECE)
    end = np.array([tokenizer.end], dtype=np.uint32)
    nothing = end[:0]
    while group := list(itertools.islice(marked, AT_ONCE)):
        encoded = tokenizer.encode_batch([piece for piece, _ in group])
        parts = [
            part for ids, (_, ended) in zip(encoded, group, strict=True) for part in (ids, end if ended else nothing)
        ]
        yield np.concatenate(parts), sum(len(piece.encode()) for piece, _ in group)
        done += sum(len(piece) for piece, _ in group)
        if progress is not None:
            progress(done, total)


def _write(path: Path, about: dict[str, Any], groups: Iterator[Group]) -> None:
    """Write beside and rename, the description last: a pair that is there is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_left_over(path)
    side = path.with_suffix(".json")
    beside = path.with_suffix(f".{os.getpid()}.part")
    count = size = check = 0
    try:
        with beside.open("wb") as file:
            for ids, text_bytes in groups:
                data = ids.astype(about["dtype"]).tobytes()
                file.write(data)
                count, size, check = count + len(ids), size + text_bytes, zlib.crc32(data, check)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        beside.write_text(json.dumps({**about, "count": count, "bytes": size, "crc32": check}, indent=1) + "\n")
        beside.replace(side)
    finally:
        beside.unlink(missing_ok=True)
    log.info("%d tokens written to %s", count, path)


def _remove_left_over(path: Path) -> None:
    """Half-written files of the same name whose process was killed; those of a process at work stay."""
    for part in path.parent.glob(f"{path.stem}.*.part"):
        number = part.name.split(".")[-2]
        try:
            if time.time() - part.stat().st_mtime > A_DAY or (number.isdigit() and not _is_alive(int(number))):
                part.unlink()
        except OSError:  # gone already, or open elsewhere
            continue


def _is_alive(process: int) -> bool:
    """Whether a process may still be at work; Windows has no harmless way to ask, so there it may."""
    if os.name == "nt":
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it is another user's
        return True
    return True


def _open(path: Path, about: dict[str, Any]) -> TokenFile | None:
    """The pair of files at this path if it is whole and what we look for, else nothing."""
    side = path.with_suffix(".json")
    if not side.exists():
        return None
    try:
        found = json.loads(side.read_text(encoding="utf-8"))
        count, size, check = int(found["count"]), int(found["bytes"]), int(found["crc32"])
        if {name: found.get(name) for name in about} != about:
            raise ValueError("of another text or tokenizer")
        width = np.dtype(about["dtype"]).itemsize
        if path.stat().st_size != count * width:
            raise ValueError("of the wrong size")
        if checksum(path) != check:
            raise ValueError("changed since it was written")
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.warning("%s is made anew: it is damaged (%s)", path, error)
        return None
    if count == 0:
        return TokenFile(np.empty(0, dtype=about["dtype"]), size, path)
    return TokenFile(np.memmap(path, dtype=about["dtype"], mode="r", shape=(count,)), size, path)


def checksum(path: Path) -> int:
    """CRC-32 of a file; reading it once also brings it into memory, where it is needed next."""
    check = 0
    with path.open("rb") as file:
        while chunk := file.read(1 << 22):
            check = zlib.crc32(chunk, check)
    return check
