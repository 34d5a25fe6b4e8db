"""Special tokens: they stand for no text, and a model needs to know what each of them is for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tokenizers
from tokenizers import processors

from weft.errors import ConfigError
from weft.text.spelling import END

PAD, UNKNOWN, CLASSIFY, SEPARATE, MASK = BERT_NAMES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROLES = {
    "end": "eos_token",
    "unknown": "unk_token",
    "classify": "cls_token",
    "separate": "sep_token",
    "mask": "mask_token",
    "pad": "pad_token",
}
"""What a special token is for, and what Hugging Face's files call it."""

_USUAL = {"classify": (CLASSIFY,), "separate": (SEPARATE,), "mask": (MASK, "<mask>"), "pad": (PAD, "<pad>")}


@dataclass(frozen=True)
class SpecialTokens:
    """Ids by what they are for: `end` of a text, `unknown`, `classify` ([CLS]), `separate` ([SEP]), `mask`, `pad`.

    None where the vocabulary has no such token.
    """

    end: int | None = None
    unknown: int | None = None
    classify: int | None = None
    separate: int | None = None
    mask: int | None = None
    pad: int | None = None


def name_special(
    settings: Mapping[str, Any],
    vocabulary: Mapping[str, int],
    ends: Sequence[str | int] = (END,),
    named: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, str]:
    """The names of the special tokens by what they are for.

    What `named` says counts if the token exists; a usual name counts if `tokenizer.json` marks the token as special,
    because otherwise it is a piece of text like any other. A text ends with the first of `ends` that exists, else
    with the token that separates texts, as in BERT.
    """
    special = {token["content"] for token in settings.get("added_tokens") or [] if token.get("special")}
    found: dict[str, str] = {}
    for role, usual in _USUAL.items():
        known = [name for name in (named or {}).get(role, ()) if name in vocabulary]
        known += [name for name in usual if name in special and name in vocabulary]
        if known:
            found[role] = known[0]
    unknown = _unknown_of(settings["model"])
    if unknown in vocabulary:
        found["unknown"] = unknown
    names = {number: name for name, number in vocabulary.items()} if any(isinstance(e, int) for e in ends) else {}
    known = [end for end in (names.get(e, "") if isinstance(e, int) else e for e in ends) if end in vocabulary]
    known += [found["separate"]] if "separate" in found else []
    if known:
        found["end"] = known[0]
    return found


def _unknown_of(model: Mapping[str, Any]) -> str:
    """What the scheme itself writes for text that it lacks; a file beside it may name a token that it never uses."""
    number = model.get("unk_id")
    if isinstance(number, int) and isinstance(model.get("vocab"), list):
        return str(model["vocab"][number][0])
    return str(model.get("unk_token") or "")


def add_special(engine: tokenizers.Tokenizer, names: Sequence[str]) -> None:
    """Add special tokens that the vocabulary does not have yet, in this order, after all the others."""
    vocabulary = engine.get_vocab()
    for place, name in enumerate(names):
        if len(name) < 2 or name in vocabulary or name in names[:place]:
            raise ConfigError(
                f"the special token {name!r} " + ("is text already" if len(name) > 1 else "is too short"),
                expected="a name that no text has, such as [CLS], and each once",
            )
    mark_special(engine, names)


def mark_special(engine: tokenizers.Tokenizer, names: Sequence[str]) -> None:
    """Tell the engine that these stand for no text."""
    engine.add_special_tokens([tokenizers.AddedToken(name, special=True, normalized=False) for name in names])


def join_like_bert(engine: tokenizers.Tokenizer, classify: str = CLASSIFY, separate: str = SEPARATE) -> None:
    """Write into the file how texts are joined, for other programs: `[CLS] a [SEP] b [SEP]`."""
    vocabulary = engine.get_vocab()
    if classify in vocabulary and separate in vocabulary:
        engine.post_processor = processors.TemplateProcessing(
            single=f"{classify}:0 $A:0 {separate}:0",
            pair=f"{classify}:0 $A:0 {separate}:0 $B:1 {separate}:1",
            special_tokens=[(classify, vocabulary[classify]), (separate, vocabulary[separate])],
        )
