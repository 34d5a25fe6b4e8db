"""A safetensors file, looked at before it is trusted: what it holds, by name, type and shape.

The file begins with the length of a JSON header, then the header, then the numbers. Everything the header
claims is checked against the size of the file, so that nothing is allocated on the word of a stranger.
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from weft.errors import DataError

LARGEST_HEADER = 100_000_000  # bytes; what the safetensors library itself allows
DTYPES = {
    "BOOL": torch.bool,
    "U8": torch.uint8,
    "I8": torch.int8,
    "U16": torch.uint16,
    "I16": torch.int16,
    "U32": torch.uint32,
    "I32": torch.int32,
    "U64": torch.uint64,
    "I64": torch.int64,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F32": torch.float32,
    "F64": torch.float64,
}


@dataclass(frozen=True)
class Entry:
    """One tensor of a file: type and shape."""

    dtype: torch.dtype
    shape: tuple[int, ...]


class _UnsoundError(Exception):
    """What is wrong with a file, in a few words."""


def read_header(path: Path) -> dict[str, Entry]:
    """What the file holds; `DataError` names the file and what is wrong with it. No number is read."""
    if path.exists() and not path.is_file():  # a pipe would keep us waiting for ever
        raise DataError(f"{path} is not a file", expected="a safetensors file")
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            start = file.read(8)
            length = int.from_bytes(start, "little")
            if len(start) < 8 or length > min(size - 8, LARGEST_HEADER):
                raise _UnsoundError(f"its header of {length} bytes does not fit into {size} bytes")
            header = file.read(length)
        return _entries(_parse(header), size - 8 - length)
    except FileNotFoundError:
        raise DataError(f"{path} is not there") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    except _UnsoundError as error:
        raise _refusal(path, str(error)) from None


def _parse(header: bytes) -> dict[str, Any]:
    if not header.startswith(b"{"):
        raise _UnsoundError("it has no header")
    try:
        parsed = json.loads(header, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise _UnsoundError(f"its header is not valid JSON ({str(error)[:80]})") from None
    notes = parsed.pop("__metadata__", {})
    if not isinstance(notes, dict) or not all(isinstance(value, str) for value in notes.values()):
        raise _UnsoundError("its __metadata__ is not a table of texts")
    return dict(parsed)


def _once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object in which every key stands once: with two of a name, two programs could read two things."""
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise _UnsoundError(f"{key[:80]!r} stands there twice")
        table[key] = value
    return table


def _entries(header: dict[str, Any], size: int) -> dict[str, Entry]:
    """The tensors, if they fill the rest of the file one after the other without hole or overlap."""
    entries: dict[str, Entry] = {}
    places: list[tuple[int, int, str]] = []
    for name, fields in header.items():
        shown = repr(name[:80])
        if not isinstance(fields, dict) or fields.keys() != {"dtype", "shape", "data_offsets"}:
            raise _UnsoundError(f"{shown} does not say dtype, shape and data_offsets")
        dtype, shape, offsets = fields["dtype"], fields["shape"], fields["data_offsets"]
        if not isinstance(dtype, str) or dtype not in DTYPES:
            raise _UnsoundError(f"{shown} has the dtype {str(dtype)[:20]!r}, which is not read here")
        if not _counts(shape) or not _counts(offsets) or len(offsets) != 2 or len(shape) > 64:
            raise _UnsoundError(f"{shown} has a shape or data_offsets that are no lists of whole numbers")
        begin, end = offsets
        if end - begin != math.prod(shape) * DTYPES[dtype].itemsize:
            raise _UnsoundError(f"{shown} has {end - begin} bytes, and shape {tuple(shape)} of {dtype} does not")
        entries[name] = Entry(DTYPES[dtype], tuple(shape))
        places.append((begin, end, shown))
    at = 0
    for begin, end, shown in sorted(places):
        if begin != at:
            raise _UnsoundError(f"there is {'a hole' if begin > at else 'an overlap'} before {shown}")
        at = end
    if at != size:
        raise _UnsoundError(f"the tensors take {at} bytes and the file has {size} for them: is it cut off?")
    return entries


def _counts(values: object) -> bool:
    return isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)


def _refusal(path: Path, why: str) -> DataError:
    """By content, not by name: what the file is instead."""
    with path.open("rb") as file:
        start = file.read(64)
    if is_pickled(path):
        return DataError(
            f"{path} holds pickled Python objects, which can run any program when they are read",
            expected="a safetensors file",
            advice="convert it where you trust it: open it there and save it with the safetensors library",
        )
    if start.startswith(b"version https://git-lfs"):
        return DataError(f"{path} is a pointer of git-lfs, not the file itself", advice="fetch it with: git lfs pull")
    return DataError(f"{path} is not a sound safetensors file: {why}")


def is_pickled(path: Path) -> bool:
    """Whether a file looks like what Python's or torch's old ways of saving write; nothing in it is followed."""
    with path.open("rb") as file:
        start = file.read(2)
    if start[:1] == b"\x80" and start[1:2] <= b"\x05":
        return True
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.endswith(".pkl") for name in archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return False
