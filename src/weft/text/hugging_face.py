"""The tokenizer of a Hugging Face folder: `tokenizer.json`, or older files: GPT-2's `vocab.json` and `merges.txt`,
BERT's `vocab.txt`, T5's `spiece.model`, Marian's `source.spm`, `target.spm` and `vocab.json`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft.errors import DataError
from weft.text.marian import is_marian, read_marian, sides_are_one
from weft.text.sentence_piece import read_t5
from weft.text.small_files import names_beside, read_limited, read_table, tokenizer_settings
from weft.text.special import LACKING, end_after
from weft.text.spelling import END
from weft.text.tokenizer import Tokenizer
from weft.text.wordpiece import READ_BY, read_vocabulary

TARGET = "target_tokenizer"
"""The folder of what a model writes, where it is spelled otherwise than what it reads, which is what others ask for."""


def has_tokenizer(folder: Path) -> bool:
    """Whether one of these forms is there."""
    return any((folder / name).is_file() for name in ("tokenizer.json", "spiece.model", "vocab.json", "vocab.txt"))


def read_folder(folder: Path, ends: Sequence[str | int] = ()) -> Tokenizer:
    """Its tokenizer: of two, that of what is written.

    What ends a text is told by name in the files beside it, else it is one of `ends`.
    """
    if (folder / TARGET / "tokenizer.json").is_file():
        return Tokenizer.load(folder / TARGET / "tokenizer.json", ends=ends)
    if (folder / "tokenizer.json").is_file():
        return _capitals_as_told(folder, Tokenizer.load(folder / "tokenizer.json", ends=ends))
    if not has_tokenizer(folder):
        raise DataError(
            f"{folder} has no tokenizer that can be read",
            expected="tokenizer.json, or vocab.json and merges.txt, or vocab.txt, or spiece.model",
            advice="where transformers is installed: AutoTokenizer.from_pretrained(…).save_pretrained(…) writes one",
        )
    if (folder / "spiece.model").is_file():
        return read_t5(folder)
    if is_marian(folder):
        return read_marian(folder, "target")
    if not (folder / "vocab.json").is_file():
        return read_vocabulary(folder, ends)
    settings = _from_old_files(folder)
    named = names_beside(folder)
    ends = [*named.get("end", ()), *ends, END]
    ids: dict[str, Any] = settings["model"]["vocab"]
    settings["added_tokens"] = [_special(name, ids[name]) for name in dict.fromkeys(ends) if name in ids]
    return Tokenizer.from_json(json.dumps(settings), name=str(folder / "vocab.json"), ends=ends, named=named)


def read_source(folder: Path) -> Tokenizer | None:
    """The tokenizer of what a model reads, if it is another than that of what it writes."""
    if (folder / TARGET / "tokenizer.json").is_file():
        return Tokenizer.load(folder / "tokenizer.json")
    if (folder / "tokenizer.json").is_file() or not is_marian(folder) or sides_are_one(folder):
        return None
    return read_marian(folder, "source")


def json_with_end(tokenizer: Tokenizer) -> str:
    """The text of a `tokenizer.json` that puts the end after each text, as models that translate read it.

    Only other programs do so: `encode` gives the same ids as ever. Pieces that the vocabulary lacks are left out.
    """
    settings = _without_lacking(json.loads(tokenizer.to_json()))
    settings["post_processor"] = end_after(tokenizer.end_name, tokenizer.end)
    return json.dumps(settings, ensure_ascii=False, indent=2)


def lacking_pieces(tokenizer: Tokenizer) -> int:
    """How many pieces of text are cut that the vocabulary lacks: they are unknown, and other programs cannot say so."""
    settings = json.loads(tokenizer.to_json())
    first = _first_lacking(settings)
    return 0 if first is None else len(settings["model"]["vocab"]) - first - 1


def _first_lacking(settings: dict[str, Any]) -> int | None:
    return next((int(token["id"]) for token in settings["added_tokens"] if token["content"] == LACKING), None)


def _without_lacking(settings: dict[str, Any]) -> dict[str, Any]:
    first = _first_lacking(settings)
    if first is None:
        return settings
    model = settings["model"]
    if isinstance(model["vocab"], list):
        model["vocab"] = model["vocab"][:first]
    else:
        model["vocab"] = {name: number for name, number in model["vocab"].items() if number < first}
        model["merges"] = [pair for pair in model["merges"] if {*pair, "".join(pair)} <= model["vocab"].keys()]
    settings["added_tokens"] = [token for token in settings["added_tokens"] if token["content"] != LACKING]
    return settings


def _capitals_as_told(folder: Path, tokenizer: Tokenizer) -> Tokenizer:
    """Where BERT's two files disagree about capitals, `tokenizer_config.json` counts, as for transformers."""
    config = tokenizer_settings(folder)
    told = config.get("do_lower_case")
    if tokenizer.kind != "wordpiece" or str(config.get("tokenizer_class")) not in READ_BY or not isinstance(told, bool):
        return tokenizer
    settings = json.loads(tokenizer.to_json())
    if settings["normalizer"]["lowercase"] == told:
        return tokenizer
    settings["normalizer"]["lowercase"] = told
    name, ends = str(folder / "tokenizer.json"), [tokenizer.end_name]
    return Tokenizer.from_json(json.dumps(settings), name=name, ends=ends, named=names_beside(folder))


def _from_old_files(folder: Path) -> dict[str, Any]:
    """GPT-2's two files as the settings of a byte-level BPE."""
    path = folder / "merges.txt"
    if not path.is_file():
        raise DataError(f"{folder} has vocab.json and no merges.txt", expected="both, or a tokenizer.json")
    content = read_limited(path)
    try:
        lines = content.decode().split("\n")
    except UnicodeDecodeError:
        raise DataError(f"{path} is not UTF-8 text") from None
    merges = [line.rstrip("\r").split(" ") for line in lines[lines[0].startswith("#version") :] if line.strip()]
    if any(len(pair) != 2 for pair in merges):
        raise DataError(f"{path} has a line that is no pair of tokens", expected="two tokens on each line")
    config = tokenizer_settings(folder)
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "normalizer": None,
        "pre_tokenizer": level | {"add_prefix_space": config.get("add_prefix_space") is True},
        "post_processor": None,
        "decoder": level,
        "model": {"type": "BPE", "vocab": read_table(folder / "vocab.json"), "merges": merges},
    }


def _special(name: str | int, number: int) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": name, "special": True, **flags}
