"""WordPiece: words are spelled with the longest pieces that the vocabulary has, `##` marks a piece inside a word
(Schuster & Nakajima 2012; as in BERT, Devlin et al. 2019).

It does not give text back: spaces are not kept, and neither are capitals and accents unless `lowercase` is off.
A word with a character that the vocabulary lacks is `[UNK]` as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from weft.config import Size
from weft.errors import ConfigError, DataError, UnsupportedError
from weft.text.base import Progress, TokenizerConfig, character_counts, for_the_engine
from weft.text.small_files import names_beside, read_limited, tokenizer_settings
from weft.text.special import BERT_NAMES, ROLES, UNKNOWN, add_special, join_like_bert, mark_special
from weft.text.spelling import INSIDE
from weft.text.tokenizer import Tokenizer

LONGEST_WORD = 100  # characters; BERT reads a longer word as unknown
LARGEST_VOCABULARY = 32 << 20  # bytes of a vocab.txt; half a million tokens in a hundred languages take 5 MB
SMALLEST = 16


class WordPieceConfig(TokenizerConfig, kind="wordpiece", aliases=("word-piece", "bert")):
    """Sub-words as BERT has them, for models that read: it does not give text back exactly.

    `lowercase` also takes accents away. A character that was seen only once is left out, so that a model meets
    `[UNK]` while it trains; `vocab_size` counts everything.
    """

    vocab_size: Size = 8192
    lowercase: bool = True

    gives_text_back: ClassVar[bool] = False

    def check(self) -> None:
        if self.vocab_size < SMALLEST:
            raise ConfigError(
                f"vocab_size = {self.vocab_size}", expected=f"at least {SMALLEST}: the special tokens and some letters"
            )

    def train(
        self, pieces: Iterable[str], *, progress: Progress | None = None, special: Sequence[str] = ()
    ) -> Tokenizer:
        """[PAD] [UNK] [CLS] [SEP] [MASK] are 0 … 4, then come characters, then pieces from the most frequent on."""
        more = [name for name in special if name not in BERT_NAMES]
        normalizer = _normalizer(lowercase=self.lowercase)
        texts = [normalizer.normalize_str(piece) for piece in for_the_engine(pieces, progress)]
        room = self.vocab_size - len(BERT_NAMES) - len(more)
        letters, inside = _alphabet(texts, room // 2)
        first = [*BERT_NAMES, *letters, *inside]
        ranks = _learned(texts, vocab_size=self.vocab_size - len(more), first=first, letters=letters)
        engine = _engine({token: ranks[token] for token in sorted(ranks, key=ranks.__getitem__)}, normalizer)
        mark_special(engine, BERT_NAMES)
        add_special(engine, more)
        join_like_bert(engine)
        return Tokenizer(engine)


def _normalizer(
    *, lowercase: bool, strip_accents: bool | None = None, split_chinese: bool = True
) -> normalizers.Normalizer:
    """BERT's cleaning: control characters go, Chinese characters stand alone, capitals and accents go if asked."""
    return normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=split_chinese, strip_accents=strip_accents, lowercase=lowercase
    )


def _engine(
    vocabulary: Mapping[str, int], normalizer: normalizers.Normalizer, unknown: str = UNKNOWN
) -> tokenizers.Tokenizer:
    model = models.WordPiece(dict(vocabulary), unk_token=unknown, max_input_chars_per_word=LONGEST_WORD)
    engine = tokenizers.Tokenizer(model)
    engine.normalizer = normalizer
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    engine.decoder = decoders.WordPiece(prefix=INSIDE)
    return engine


# -- learning ---------------------------------------------------------------------------------


def _learned(
    texts: Sequence[str], *, vocab_size: int, first: Sequence[str] = (), letters: Sequence[str] | None = None
) -> dict[str, int]:
    """The vocabulary that the engine makes of normalised texts; it begins with `first`."""
    engine = tokenizers.Tokenizer(models.WordPiece(unk_token=UNKNOWN))
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size,
        min_frequency=2,
        special_tokens=list(first),
        limit_alphabet=0x110000 if letters is None else len(letters),
        initial_alphabet=list(letters or ()),
        continuing_subword_prefix=INSIDE,
        show_progress=False,
    )
    engine.train_from_iterator(texts, trainer)
    return engine.get_vocab()


def _alphabet(texts: Sequence[str], most: int) -> tuple[list[str], list[str]]:
    """The characters worth having, and those of them that stand inside words, both in the order of Unicode.

    The engine would number the second in an order that changes from run to run, and break ties by these numbers: a
    pass of its own finds them, so that the same text always gives the same vocabulary.
    """
    counts = character_counts(texts)
    seen = _learned(texts, vocab_size=0)
    letters = [token for token in seen if len(token) == 1 and counts[ord(token)] > 1]
    letters = sorted(sorted(letters, key=lambda letter: (-counts[ord(letter)], letter))[:most])
    return letters, [INSIDE + letter for letter in letters if INSIDE + letter in seen]


# -- BERT's own files -------------------------------------------------------------------------

READ_BY = {
    f"{name}Tokenizer{fast}"
    for name in ("Bert", "DistilBert", "Electra", "LayoutLM", "Lxmert", "MobileBert")
    for fast in ("", "Fast")
}
"""Their classes that follow BERT's rules in everything."""


def read_vocabulary(folder: Path, ends: Sequence[str | int] = ()) -> Tokenizer:
    """The tokenizer of BERT's `vocab.txt`: the token on line n, counted from 0, has the id n.

    Whether capitals count is told by `tokenizer_config.json` beside it; without a word they do not.
    """
    path = folder / "vocab.txt"
    settings = tokenizer_settings(folder)
    maker = str(settings.get("tokenizer_class") or "BertTokenizer")
    if maker not in READ_BY or settings.get("do_basic_tokenize") is False:
        raise UnsupportedError(
            f"{path} was made for {maker}" + ("" if maker not in READ_BY else " without its splitting into words"),
            expected="BERT's WordPiece",
            advice="where transformers is installed: AutoTokenizer.from_pretrained(…).save_pretrained(…) may write "
            "a tokenizer.json",
        )
    vocabulary = _lines(path)
    named = names_beside(folder)
    usual = dict(zip(("pad", "unknown", "classify", "separate", "mask"), BERT_NAMES, strict=True))
    names = {role: next(iter(named.get(role, [])), name) for role, name in usual.items()}
    for role in ("unknown", "separate"):
        if names[role] not in vocabulary:
            raise DataError(f"{path} has no {names[role]}", expected=f"a BERT vocabulary with its {ROLES[role]}")
    normalizer = _normalizer(
        lowercase=_switch(settings, "do_lower_case", True) is not False,
        strip_accents=_switch(settings, "strip_accents", None),
        split_chinese=_switch(settings, "tokenize_chinese_chars", True) is not False,
    )
    engine = _engine(vocabulary, normalizer, names["unknown"])
    mark_special(engine, [name for name in names.values() if name in vocabulary])
    join_like_bert(engine, names["classify"], names["separate"])
    return Tokenizer(engine, ends=[*named.get("end", ()), *ends, names["separate"]], named=named)


def _switch(settings: Mapping[str, Any], name: str, default: bool | None) -> bool | None:
    """True, false or null of a stranger's file."""
    value = settings.get(name, default)
    if value is not None and not isinstance(value, bool):
        raise DataError(f"tokenizer_config.json: {name} = {value!r}", expected="true, false or null")
    return value


def _lines(path: Path) -> dict[str, int]:
    """The tokens of a `vocab.txt` and their ids; lines end with a newline and with nothing else of Unicode."""
    content = read_limited(path, LARGEST_VOCABULARY)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataError(f"{path} is not UTF-8 text: see line {line}", expected="one token on each line") from None
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text.strip() else []
    vocabulary: dict[str, int] = {}
    for number, token in enumerate(lines):
        if not token or token in vocabulary:
            what = f"has {token!r} on the lines {vocabulary[token] + 1} and {number + 1}" if token else ""
            raise DataError(f"{path} {what or f'is empty on line {number + 1}'}", expected="another token on each line")
        vocabulary[token] = number
    if not vocabulary:
        raise DataError(f"{path} is empty", expected="one token on each line")
    return vocabulary
