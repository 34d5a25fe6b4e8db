"""The content of a SentencePiece file (`spiece.model`, `source.spm`): pieces, their scores, and how text is cleaned.

The file is a protocol buffer: fields, each with a number and a value, some of which hold fields again. The few that
matter here are read without the packages that wrote them; a stranger's file is checked on the way.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from weft.errors import DataError
from weft.text.small_files import read_limited

LARGEST = 64 << 20  # bytes; a quarter of a million pieces take 5 MB
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = range(1, 7)
SCHEMES = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}

Value = int | bytes


@dataclass(frozen=True)
class Piece:
    """A piece of text with its score; `role` says whether it is one: NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE."""

    name: str
    score: float
    role: int


@dataclass(frozen=True)
class PieceFile:
    """What a SentencePiece file says.

    scheme        unigram, bpe, word or char
    charsmap      the table by which characters are replaced, in the form that the engine reads; `rule` is its name
    prefix        whether a text gets a space before its first word
    trim          whether spaces at the edges go, and several become one
    """

    pieces: tuple[Piece, ...]
    scheme: str
    byte_fallback: bool
    rule: str
    charsmap: bytes
    prefix: bool
    trim: bool
    oddities: tuple[str, ...]

    def names(self, *roles: int) -> list[str]:
        """The pieces of these roles, in the order of their ids."""
        return [piece.name for piece in self.pieces if piece.role in roles]


def read_piece_file(path: Path) -> PieceFile:
    """Read and check such a file."""
    content = memoryview(read_limited(path, LARGEST))
    try:
        parts = list(_fields(content))
        pieces = tuple(_piece(value) for number, value in parts if number == 1)
        trainer, normalizer = (dict(_fields(_last(parts, number))) for number in (2, 3))
        undone = dict(_fields(_last(parts, 5)))
        found = PieceFile(
            pieces=pieces,
            scheme=SCHEMES.get(_number(trainer, 3, 1), "unknown"),
            byte_fallback=bool(_number(trainer, 35, 0)),
            rule=_bytes(normalizer.get(1, b"")).decode(),
            charsmap=_bytes(normalizer.get(2, b"")),
            prefix=bool(_number(normalizer, 3, 1)),
            trim=bool(_number(normalizer, 4, 1)),
            oddities=tuple(
                what
                for odd, what in (
                    (_number(trainer, 24, 0), "spaces at the end of words"),
                    (not _number(normalizer, 5, 1), "spaces as they are"),
                    (undone.get(2), "changes to what is written"),
                )
                if odd
            ),
        )
    except (ValueError, struct.error) as error:
        raise DataError(f"{path} is no SentencePiece file ({error})", advice="is it complete?") from None
    _check(found, path)
    return found


def _check(found: PieceFile, path: Path) -> None:
    names = [piece.name for piece in found.pieces]
    twice = next(
        (name for name, before in zip(sorted(names), [None, *sorted(names)], strict=False) if name == before), ""
    )
    if twice or not all(names):
        raise DataError(f"{path} has the piece {twice!r} twice" if twice else f"{path} has a piece without a name")
    if len(found.names(UNKNOWN)) != 1:
        raise DataError(
            f"{path} has {len(found.pieces)} pieces, {len(found.names(UNKNOWN))} of them for what is unknown",
            expected="a SentencePiece file with one such piece",
        )


# -- fields -----------------------------------------------------------------------------------


def _fields(data: memoryview) -> Iterator[tuple[int, Value | memoryview]]:
    """The fields of a message: number and value."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        wire = key & 7
        if wire == 0:
            value, place = _varint(data, place)
            yield key >> 3, value
            continue
        if wire == 2:
            size, place = _varint(data, place)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ValueError(f"a field of the form {wire}")
        if size > len(data) - place:
            raise ValueError("it ends too early")
        yield key >> 3, data[place : place + size]
        place += size


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    """A whole number in as few bytes as it needs, seven bits in each, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            raise ValueError("it ends too early")
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
    raise ValueError("a number that is too long")


def _piece(value: Value | memoryview) -> Piece:
    fields = dict(_fields(memoryview(_bytes(value))))
    score = struct.unpack("<f", _bytes(fields.get(2, b"\0\0\0\0")))[0]
    if not math.isfinite(score):
        raise ValueError(f"a score of {score}")
    return Piece(_bytes(fields.get(1, b"")).decode(), score, _number(fields, 3, NORMAL))


def _last(parts: list[tuple[int, Value | memoryview]], wanted: int) -> memoryview:
    """The last message with this number, or an empty one."""
    return memoryview(_bytes(next((value for number, value in reversed(parts) if number == wanted), b"")))


def _bytes(value: Value | memoryview) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number where text belongs")
    return bytes(value)


def _number(fields: dict[int, Value | memoryview], number: int, default: int) -> int:
    value = fields.get(number, default)
    if not isinstance(value, int):
        raise ValueError("text where a number belongs")
    return value
