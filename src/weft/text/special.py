"""Special tokens: they stand for no text, and a model needs to know what each of them is for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tokenizers
from tokenizers import processors

from weft.errors import ConfigError
from weft.text.spelling import BYTE_NAMES, END

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

USUAL_END = "</s>"  # of T5, Marian and others
SENTINEL = "<extra_id_{}>"  # T5's names of gaps
LACKING = "<|lacking|>"  # ids from here on are pieces that the vocabulary does not have: unknown

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
    with the token that separates texts, as in BERT, else with `</s>`.
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
    known += [USUAL_END] if USUAL_END in special and USUAL_END in vocabulary else []
    if known:
        found["end"] = known[0]
    return found


def _unknown_of(model: Mapping[str, Any]) -> str:
    """What the scheme itself writes for text that it lacks; a file beside it may name a token that it never uses."""
    number = model.get("unk_id")
    if isinstance(number, int) and isinstance(model.get("vocab"), list):
        name = str(model["vocab"][number][0])
        return "" if name in BYTE_NAMES else name  # with all the bytes nothing is unknown
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


def sentinels_of(settings: Mapping[str, Any], vocabulary: Mapping[str, int]) -> list[int]:
    """The ids of `<extra_id_0>`, `<extra_id_1>`, …, as far as there are any."""
    special = {token["content"] for token in settings.get("added_tokens") or [] if token.get("special")}
    found: list[int] = []
    while (name := SENTINEL.format(len(found))) in special and name in vocabulary:
        found.append(vocabulary[name])
    return found


def join_like_bert(engine: tokenizers.Tokenizer, classify: str = CLASSIFY, separate: str = SEPARATE) -> None:
    """Write into the file how texts are joined, for other programs: `[CLS] a [SEP] b [SEP]`."""
    vocabulary = engine.get_vocab()
    if classify in vocabulary and separate in vocabulary:
        engine.post_processor = processors.TemplateProcessing(
            single=f"{classify}:0 $A:0 {separate}:0",
            pair=f"{classify}:0 $A:0 {separate}:0 $B:1 {separate}:1",
            special_tokens=[(classify, vocabulary[classify]), (separate, vocabulary[separate])],
        )


def end_after(end: str, number: int) -> dict[str, Any]:
    """How a `tokenizer.json` tells other programs that a text is followed by its end: `a </s>`, `a </s> b </s>`."""
    first, second = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    last = {"SpecialToken": {"id": end, "type_id": 0}}
    return {
        "type": "TemplateProcessing",
        "single": [first, last],
        "pair": [first, last, second, last],
        "special_tokens": {end: {"id": end, "ids": [number], "tokens": [end]}},
    }


def puts_end_after(processor: Any, end: str) -> bool:
    """Whether this is all that a file does to a text alone."""
    template = isinstance(processor, Mapping) and processor.get("type") == "TemplateProcessing"
    return template and processor.get("single") == end_after(end, 0)["single"]
