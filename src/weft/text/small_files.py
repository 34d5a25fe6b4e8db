"""The small files of tokenizers, read with care: they may come from a stranger and be of any size."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft.errors import DataError
from weft.text.special import ROLES

LARGEST_FILE = 256 << 20


def read_limited(path: Path, most: int | None = None) -> bytes:
    """The content of a file, unless it is too large for a tokenizer."""
    limit = LARGEST_FILE if most is None else most
    try:
        size = path.stat().st_size
        if size > limit:
            raise DataError(f"{path} has {size >> 20} MB", expected=f"a tokenizer of at most {limit >> 20}")
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None


def read_table(path: Path) -> dict[str, Any]:
    """A JSON object from a file of bearable size."""
    content = read_limited(path)
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise DataError(f"{path} is not valid JSON", advice="is it complete?") from None
    if not isinstance(found, dict):
        raise DataError(f"{path} is JSON, but no table")
    return found


def tokenizer_settings(folder: Path) -> dict[str, Any]:
    """What `tokenizer_config.json` says; nothing if there is none."""
    path = folder / "tokenizer_config.json"
    return read_table(path) if path.is_file() else {}


def names_beside(folder: Path) -> dict[str, Sequence[str]]:
    """What Hugging Face's small files call the special tokens, by what they are for."""
    named: dict[str, list[str]] = {role: [] for role in ROLES}
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        table = read_table(folder / name) if (folder / name).is_file() else {}
        for role, theirs in ROLES.items():
            token = table.get(theirs)
            token = token.get("content") if isinstance(token, dict) else token
            if isinstance(token, str):
                named[role].append(token)
    return {role: names for role, names in named.items() if names}
