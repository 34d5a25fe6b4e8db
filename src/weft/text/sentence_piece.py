"""Tokenizers of SentencePiece files (Kudo & Richardson 2018): T5's `spiece.model`, Marian's `source.spm`.

They need no package but the engine. Texts are cut as SentencePiece cuts them; only marks above letters that stand in an
order of their own may be put into the usual one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers

from weft.errors import DataError, UnsupportedError
from weft.text.piece_file import BYTE, CONTROL, NORMAL, UNKNOWN, UNUSED, USER, PieceFile, read_piece_file
from weft.text.small_files import tokenizer_settings
from weft.text.special import LACKING, SENTINEL, USUAL_END, mark_special
from weft.text.spelling import HIDDEN, SPACE
from weft.text.tokenizer import LARGEST_GAP, Tokenizer

BREAK = "\ufdd1"  # stands for a moment between a letter and the marks above it
MARKS = ("<unk>", USUAL_END, "<pad>", "<s>")  # of Marian; it adds them to its vocabulary itself
LANGUAGE = re.compile(r">>[^<>]+<<")
READ_BY = {f"{name}Tokenizer{fast}" for name in ("T5", "MT5") for fast in ("", "Fast")}
SENTINELS = 100  # of T5, where nothing else is said
MOST_SENTINELS = 10_000


def read_sentence_piece(
    path: str | Path, vocabulary: Mapping[str, int] | None = None, *, special: Sequence[str] = ()
) -> Tokenizer:
    """The tokenizer of a SentencePiece file, of a unigram or BPE scheme.

    With a `vocabulary` (Marian's `vocab.json`) tokens have the ids that stand there. Pieces that it lacks are read as
    the unknown token; tokens that are no pieces of this file are never read, but written. `special` are names of
    further tokens, after all the others.
    """
    found = read_piece_file(Path(path))
    _check_supported(found, path)
    if vocabulary is None:
        tokens, marks = [piece.name for piece in found.pieces], found.names(UNKNOWN, CONTROL)
    else:
        tokens, marks = _arranged(found, vocabulary, path)
    engine = tokenizers.Tokenizer(_model(found, tokens))
    engine.normalizer = _cleaning(found, path)
    engine.pre_tokenizer = _splitter(found, marks)
    engine.decoder = _decoder(found)
    mark_special(engine, [*marks, *special])
    return Tokenizer(engine, ends=(USUAL_END,))


def _check_supported(found: PieceFile, path: str | Path) -> None:
    odd = list(found.oddities)
    if found.scheme not in ("unigram", "bpe"):
        odd.append(f"the scheme {found.scheme!r}")
    if found.names(UNUSED):
        odd.append("pieces that are switched off")
    if found.scheme == "bpe" and found.names(USER):
        odd.append("BPE with symbols of a user")
    if odd:
        raise UnsupportedError(
            f"{path} has {odd[0]}",
            expected="a usual unigram or BPE file of SentencePiece",
            advice="where transformers is installed: AutoTokenizer.from_pretrained(…).save_pretrained(…) may write "
            "a tokenizer.json",
        )


# -- from pieces to a vocabulary --------------------------------------------------------------


def _arranged(found: PieceFile, vocabulary: Mapping[str, Any], path: str | Path) -> tuple[list[str], list[str]]:
    """All tokens in the order of the ids that the vocabulary gives them, and which of them are special.

    What no text of this side is cut into is hidden; the pieces that the vocabulary lacks come after a last special one.
    """
    (unknown,) = found.names(UNKNOWN)
    ids = [number for number in vocabulary.values() if isinstance(number, int) and not isinstance(number, bool)]
    if unknown not in vocabulary or not ids or len(set(ids)) != len(vocabulary) or min(ids) < 0:
        what = f"without {unknown}" if ids and unknown not in vocabulary else "whose ids are no numbers, each once"
        raise DataError(f"{path}: a vocabulary {what}", expected="an id for each token, from 0 on")
    if max(ids) >= len(ids) + LARGEST_GAP:
        raise DataError(f"{path}: {len(ids)} tokens with ids up to {max(ids)}", expected="one id for each token")
    read = set(found.names(NORMAL, USER, BYTE))
    marks = [name for name in dict.fromkeys([*found.names(UNKNOWN, CONTROL), *MARKS]) if name in vocabulary]
    shown = {*read, *marks, *filter(LANGUAGE.fullmatch, vocabulary)}
    tokens = [f"{HIDDEN}<{number}>" for number in range(max(ids) + 1)]
    for name, number in vocabulary.items():
        tokens[number] = name if name in shown else HIDDEN + name
    lacking = [piece.name for piece in found.pieces if piece.name in read and piece.name not in vocabulary]
    return ([*tokens, LACKING, *lacking], [*marks, LACKING]) if lacking else (tokens, marks)


def _model(found: PieceFile, tokens: Sequence[str]) -> models.Model:
    (unknown,) = found.names(UNKNOWN)
    scores = {piece.name: piece.score for piece in found.pieces if piece.role == NORMAL}
    if found.scheme == "bpe":
        numbers = {name: number for number, name in enumerate(tokens)}
        return models.BPE(numbers, _merges(scores), unk_token=unknown, fuse_unk=True, byte_fallback=found.byte_fallback)
    highest = max(scores.values(), default=0.0)
    for name in found.names(USER):  # SentencePiece rates them so that nothing shorter can be better
        scores[name] = len(name.encode()) * highest - 0.1
    listed = [(name, scores.get(name, 0.0)) for name in tokens]
    return models.Unigram(listed, unk_id=tokens.index(unknown), byte_fallback=found.byte_fallback)


def _merges(scores: Mapping[str, float]) -> list[tuple[str, str]]:
    """All pairs of pieces that make a piece, the best piece first."""
    best = sorted((name for name in scores if len(name) > 1), key=lambda name: -scores[name])
    return [
        (name[:cut], name[cut:])
        for name in best
        for cut in range(1, len(name))
        if name[:cut] in scores and name[cut:] in scores
    ]


# -- the rules --------------------------------------------------------------------------------


def _cleaning(found: PieceFile, path: str | Path) -> normalizers.Normalizer:
    """Characters are replaced, spaces tidied, and written as `▁`."""
    steps: list[normalizers.Normalizer] = []
    if found.charsmap:
        table = _table(found.charsmap, path)
        if found.rule.endswith(("nfkc", "nfkc_cf")):
            # the engine's own loses marks after a letter that it replaces: join them where there is a joined
            # letter, which is what these tables do too, and keep the others away from the letter meanwhile
            apart = normalizers.Replace(Regex(r"(?<=[\s\S])(?=[\p{M}\x{200C}\x{200D}\x{1160}-\x{11FF}])"), BREAK)
            steps += [normalizers.NFC(), apart, table, normalizers.Replace(BREAK, "")]
        else:
            steps.append(table)
    if found.trim:
        steps += [
            normalizers.Replace(Regex(r"\A +"), ""),
            normalizers.Replace(Regex(r"[ ▁]+\z"), ""),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    if found.prefix:
        steps.append(normalizers.Prepend(SPACE))
    return normalizers.Sequence([*steps, normalizers.Replace(" ", SPACE)])


def _table(charsmap: bytes, path: str | Path) -> normalizers.Normalizer:
    try:
        table = normalizers.Precompiled(charsmap)
        table.normalize_str("a")
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException:  # the engine panics on some broken tables, which is no `Exception`
        raise DataError(f"{path}: its table of characters cannot be used", advice="is the file complete?") from None
    return table


def _splitter(found: PieceFile, marks: Sequence[str]) -> pre_tokenizers.PreTokenizer:
    """Where no piece goes on after a space, words are cut alone, which is quicker.

    What a person types is text, also when it looks like `</s>`: such a name is broken before its last character.
    """
    steps: list[pre_tokenizers.PreTokenizer] = []
    if not any(SPACE in name[1:] for name in found.names(NORMAL, USER)):
        steps.append(pre_tokenizers.Split(SPACE, behavior="merged_with_next"))
    names = [name for name in marks if len(name) > 1] if found.scheme == "unigram" else []
    spelled = [f"{re.escape(name[:-1])}(?={re.escape(name[-1])})" for name in sorted(names)]
    spelled += [r"<0x[0-9A-F]{2}(?=>)"] if found.byte_fallback and names else []
    if spelled:
        steps.append(pre_tokenizers.Split(Regex("|".join(spelled)), behavior="merged_with_previous"))
    return pre_tokenizers.Sequence(steps)


def _decoder(found: PieceFile) -> decoders.Decoder:
    steps: list[decoders.Decoder] = [decoders.Replace(HIDDEN, ""), decoders.Replace(SPACE, " ")]
    steps += [decoders.ByteFallback(), decoders.Fuse()]
    return decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)] if found.prefix else steps)


# -- folders ----------------------------------------------------------------------------------


def read_t5(folder: Path) -> Tokenizer:
    """T5's `spiece.model` and the sentinels that the files beside it count; `<extra_id_0>` has the highest id."""
    path, settings = folder / "spiece.model", tokenizer_settings(folder)
    maker = str(settings.get("tokenizer_class") or "T5Tokenizer")
    number = settings.get("extra_ids", SENTINELS)
    if maker not in READ_BY:
        raise UnsupportedError(
            f"{path} was made for {maker}",
            expected="T5's",
            advice="where transformers is installed: AutoTokenizer.from_pretrained(…).save_pretrained(…) may write "
            "a tokenizer.json",
        )
    if not isinstance(number, int) or not 0 <= number <= MOST_SENTINELS:
        raise DataError(f"tokenizer_config.json: extra_ids = {number!r}", expected=f"a number up to {MOST_SENTINELS}")
    return read_sentence_piece(path, special=[SENTINEL.format(place) for place in reversed(range(number))])
