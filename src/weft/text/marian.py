"""Marian's tokenizer: two SentencePiece models, for what is read and what is written, over one vocabulary or two.

`source.spm` and `target.spm` cut text into pieces; `vocab.json` says which ids these have, and `target_vocab.json`
those of the target, where it has a vocabulary of its own. A model for several languages is told which one to write by
a word at the beginning, such as `>>fra<<`, which is a token.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal

from weft.errors import DataError
from weft.text.small_files import names_beside, read_limited, read_table, tokenizer_settings
from weft.text.tokenizer import Tokenizer

Side = Literal["source", "target"]
USUAL = {"end": "</s>", "pad": "<pad>", "unknown": "<unk>"}
LANGUAGE = re.compile(r">>[^<>]+<<")


def is_marian(folder: Path) -> bool:
    """Whether the folder has Marian's files."""
    return all((folder / name).is_file() for name in ("source.spm", "target.spm", "vocab.json"))


def read_marian(folder: Path) -> tuple[Tokenizer, Tokenizer | None]:
    """The tokenizers of what is written and of what is read, if that is another."""
    separate = tokenizer_settings(folder).get("separate_vocabs") is True
    target = _read(folder, "target", "target_vocab.json" if separate else "vocab.json")
    if not separate and read_limited(folder / "source.spm") == read_limited(folder / "target.spm"):
        return target, None
    return target, _read(folder, "source", "vocab.json")


def _read(folder: Path, side: Side, vocabulary_file: str) -> Tokenizer:
    from weft.text.sentence_piece import read_sentence_piece

    vocabulary = _vocabulary(folder / vocabulary_file)
    names = {role: [*names_beside(folder).get(role, ()), usual] for role, usual in USUAL.items()}
    settings = json.loads(_json_of(read_sentence_piece(folder / f"{side}.spm", vocabulary)))
    special = {name for known in names.values() for name in known if name in vocabulary}
    words = sorted(special | set(filter(LANGUAGE.fullmatch, vocabulary)), key=vocabulary.__getitem__)
    settings["added_tokens"] = [_added(name, vocabulary[name], special=name in special) for name in words]
    name = str(folder / f"{side}.spm")
    return Tokenizer.from_json(json.dumps(settings), name=name, ends=names["end"], named=names)


def _vocabulary(path: Path) -> dict[str, int]:
    found = read_table(path)
    ids = found.values()
    if any(type(number) is not int or not 0 <= number < 2**31 for number in ids) or len(set(ids)) != len(found):
        raise DataError(f"{path} is no vocabulary", expected="pieces of text, each with an id of its own")
    return found


def _json_of(found: Any) -> str:
    return str(found.to_json() if isinstance(found, Tokenizer) else found.to_str())


def _added(name: str, number: int, *, special: bool) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": name, "special": special, **flags}
