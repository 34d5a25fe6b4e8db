"""Marian's tokenizer: two SentencePiece models, for what is read and what is written, over one vocabulary or two.

`source.spm` and `target.spm` cut text into pieces; `vocab.json` says which ids these have, and `target_vocab.json`
those of the target, where it has a vocabulary of its own. A model for several languages is told which one to write by
a word before the text, such as `>>fra<<`, which is a token.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

from weft.text.sentence_piece import LANGUAGE, read_sentence_piece
from weft.text.small_files import read_limited, read_table, tokenizer_settings
from weft.text.tokenizer import Tokenizer


def is_marian(folder: Path) -> bool:
    """Whether the folder has Marian's files."""
    return all((folder / name).is_file() for name in ("source.spm", "target.spm", "vocab.json"))


def sides_are_one(folder: Path) -> bool:
    """Whether what is read and what is written are spelled alike."""
    return not _is_separate(folder) and read_limited(folder / "source.spm") == read_limited(folder / "target.spm")


def read_marian(folder: Path, side: Literal["source", "target"]) -> Tokenizer:
    """The tokenizer of one side."""
    own = side == "target" and _is_separate(folder)
    path, vocabulary = folder / f"{side}.spm", read_table(folder / ("target_vocab.json" if own else "vocab.json"))
    found = read_sentence_piece(path, vocabulary)
    codes = [name for name in vocabulary if LANGUAGE.fullmatch(name)]
    if not codes:
        return found
    settings = json.loads(found.to_json())
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    settings["added_tokens"] += [{"id": vocabulary[name], "content": name, **flags} for name in codes]
    return Tokenizer.from_json(json.dumps(settings), name=str(path), ends=[found.end_name])


def _is_separate(folder: Path) -> bool:
    return tokenizer_settings(folder).get("separate_vocabs") is True
