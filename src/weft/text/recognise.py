"""Which of our schemes a `tokenizer.json` is, told from its structure: the file needs no field of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from weft.text.spelling import (
    BYTE_CHARACTERS,
    BYTE_NAMES,
    END,
    INSIDE,
    SPACE,
    byte_fallback,
    byte_level,
    sentence_piece,
    word_piece,
)

WORD_PATTERN = r" ?\w+| ?[^\w\s]+|\s+(?!\S)|\s+"
"""Words with the space before them, then marks, then what space is left; joined, they are the text again."""


def kind_of(settings: Mapping[str, Any]) -> str:
    """`characters`, `bytes`, `words`, `bpe`, `unigram`, `wordpiece`, or `other` for what follows none of our rules."""
    model, splitter = settings["model"], settings.get("pre_tokenizer")
    if _is_word_piece(settings):
        return "wordpiece"
    added = settings.get("added_tokens", [])
    only_end = [token["content"] for token in added[:1]] == [END] and all(token["special"] for token in added)
    if only_end and _is_unigram(settings):
        return "unigram"
    if settings.get("normalizer") is not None or not _plain_bpe(model):
        return "other"
    vocabulary, merges = model["vocab"], model["merges"]
    if splitter is None:
        if model["byte_fallback"] and only_end and not merges and _is_characters(vocabulary):
            return "characters"
        return "other"
    if model["byte_fallback"] or not decodes_bytes(settings) or not all(c in vocabulary for c in BYTE_CHARACTERS):
        return "other"
    steps = splitter["pretokenizers"] if splitter["type"] == "Sequence" else [splitter]
    *before, last = steps
    if last["type"] != "ByteLevel" or last["add_prefix_space"]:
        return "other"
    if last["use_regex"]:
        return "other" if before else "bpe"
    if not before and not merges and only_end and _is_bytes(vocabulary):
        return "bytes"
    is_words = model["ignore_merges"] and not merges and only_end and _splits_words(before)
    return "words" if is_words else "other"


def _is_word_piece(settings: Mapping[str, Any]) -> bool:
    """BERT's rules: its cleaning, its splitting into words, `##`, and a token for what is unknown."""
    model, parts = settings["model"], [settings.get(name) or {} for name in ("normalizer", "pre_tokenizer", "decoder")]
    rules = ["BertNormalizer", "BertPreTokenizer", "WordPiece"]
    if model.get("type") != "WordPiece" or [part.get("type") for part in parts] != rules:
        return False
    return (
        model["continuing_subword_prefix"] == parts[2].get("prefix") == INSIDE and model["unk_token"] in model["vocab"]
    )


def _is_unigram(settings: Mapping[str, Any]) -> bool:
    """Our own rules: nothing is cleaned away, words keep their space, and the first 256 tokens are the bytes."""
    model, splitter = settings["model"], settings.get("pre_tokenizer")
    steps = [step.get("type") for step in (settings.get("decoder") or {}).get("decoders", [])]
    return (
        model.get("type") == "Unigram"
        and bool(model.get("byte_fallback"))
        and tuple(token for token, _ in model["vocab"][:256]) == BYTE_NAMES
        and settings.get("normalizer") is None
        and splitter is not None
        and _splits_words([splitter])
        and steps == ["ByteFallback", "Fuse"]
    )


def _plain_bpe(model: Mapping[str, Any]) -> bool:
    """A BPE model without chance, marks on sub-words, or an unknown token."""
    odd = ("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix")
    return model.get("type") == "BPE" and not any(model.get(name) for name in odd)


def _is_characters(vocabulary: Mapping[str, int]) -> bool:
    names = {token for token in vocabulary if len(token) != 1 and token != END}
    return names == set(BYTE_NAMES)


def _is_bytes(vocabulary: Mapping[str, int]) -> bool:
    bytes_only = {token: number for token, number in vocabulary.items() if token != END}
    return bytes_only == {character: value for value, character in enumerate(BYTE_CHARACTERS)}


def decodes_bytes(settings: Mapping[str, Any]) -> bool:
    """Whether tokens are written with GPT-2's alphabet of bytes."""
    return (settings.get("decoder") or {}).get("type") == "ByteLevel"


def spelling_of(settings: Mapping[str, Any]) -> Callable[[str], bytes]:
    """The bytes of a token, by the rules of its file."""
    if decodes_bytes(settings):
        return byte_level
    if settings["model"].get("type") == "WordPiece":
        return word_piece
    return sentence_piece if decodes_lines(settings) else byte_fallback


def decodes_lines(settings: Mapping[str, Any]) -> bool:
    """Whether a space is written as `▁`, as SentencePiece does."""
    decoder = settings.get("decoder") or {}
    steps = decoder.get("decoders", []) if decoder.get("type") == "Sequence" else [decoder]
    replaced = {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}
    return any(
        step == replaced or (step.get("type"), step.get("replacement")) == ("Metaspace", SPACE) for step in steps
    )


def _splits_words(steps: list[Mapping[str, Any]]) -> bool:
    ours = {"type": "Split", "pattern": {"Regex": WORD_PATTERN}, "behavior": "Isolated", "invert": False}
    return steps == [ours]
