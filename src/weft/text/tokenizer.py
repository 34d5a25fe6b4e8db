"""Text to ids and back. The engine is the `tokenizers` library; what is added here is exactness.

`decode(encode(text)) == text` for every text (WordPiece apart), special tokens are never read out of what a person
wrote unless asked, each id knows how many bytes it stands for, and a file from a stranger is checked before it is used.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import tokenizers
from numpy.typing import ArrayLike, NDArray

from weft.errors import ConfigError, DataError, UnsupportedError
from weft.text.pairs import Joined, flat, join
from weft.text.recognise import kind_of, spelling_of
from weft.text.small_files import names_beside, read_limited
from weft.text.special import LACKING, ROLES, SpecialTokens, name_special, puts_end_after, sentinels_of
from weft.text.spelling import BYTE_NAMES, END, CharacterTable, Ids, utf8

LARGEST_GAP = 4096  # ids that no token has; a file with more of them asks for memory, not for tokens


class Tokenizer:
    """A vocabulary and the rule that cuts text into it; `kind` is how it was made.

    Made by `TokenizerConfig.train`, or read from a `tokenizer.json`. Its own kinds are `characters`, `bytes`,
    `words`, `bpe` and `unigram`, which give every text back exactly, and `wordpiece`, which loses spaces and, with
    `lowercase`, capitals and accents; whatever else the engine can read is `other` and promises nothing either.
    `end_name` is the token that ends a text: ours is `<|endoftext|>`, other programs have others. `ends` are names or
    ids that may be it, the first that exists is. `special` has the ids of the other special tokens, as far as there
    are any; `named` are names that they may have (`{"mask": ["<mask>"]}`). `sentinels` are the ids of `<extra_id_0>`,
    `<extra_id_1>`, …, which stand for gaps in T5; there are often none.
    """

    def __init__(
        self,
        engine: tokenizers.Tokenizer,
        *,
        ends: Sequence[str | int] = (END,),
        named: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        engine.no_padding()
        engine.no_truncation()
        engine.encode_special_tokens = True  # what a person types is text, also when it looks like <|endoftext|>
        self._engine = engine
        self._vocabulary: dict[str, int] = engine.get_vocab(with_added_tokens=True)
        beyond = self._vocabulary.get(LACKING)
        if beyond is not None:
            self._vocabulary = {name: number for name, number in self._vocabulary.items() if number < beyond}
        ids = self._vocabulary.values()
        self.vocab_size: int = max(ids, default=-1) + 1
        if len(set(ids)) != len(ids) or self.vocab_size > len(ids) + LARGEST_GAP:
            raise DataError(f"{len(ids)} tokens with ids up to {self.vocab_size - 1}", expected="one id for each token")
        settings = json.loads(engine.to_str())
        self._names = name_special(settings, self._vocabulary, ends, named)
        if "end" not in self._names:
            raise DataError(f"the vocabulary has no {ends[-1]}", expected="a token that marks the end of a text")
        usual = name_special(settings, self._vocabulary)
        self._unusual = {role: name for role, name in self._names.items() if usual.get(role) != name}
        self.special = SpecialTokens(**{role: self._vocabulary[name] for role, name in self._names.items()})
        self.end_name: str = self._names["end"]
        self.end: int = self._vocabulary[self.end_name]
        self.kind: str = kind_of(settings)
        self.sentinels: list[int] = sentinels_of(settings, self._vocabulary)
        self._lacking = beyond is not None and self.special.unknown is not None
        self._spell = spelling_of(settings)

    def __repr__(self) -> str:
        return f"Tokenizer({self.kind}, vocab_size={self.vocab_size})"

    # -- text to ids --------------------------------------------------------------------------

    @cached_property
    def _look_up(self) -> Callable[[str], Ids] | None:
        """The fast road of the schemes that need no merging."""
        if self.kind == "characters":
            return CharacterTable(self._vocabulary).encode
        if self.kind == "bytes":
            return lambda text: np.frombuffer(utf8(text), dtype=np.uint8).astype(np.uint32)
        return None

    def encode(self, text: str) -> Ids:
        """The ids of a text; no special token is added or recognised."""
        return self.encode_batch([text])[0]

    def encode_batch(self, pieces: Sequence[str]) -> list[Ids]:
        """The ids of several texts, on all cores."""
        if self._look_up is not None:
            return [self._look_up(piece) for piece in pieces]
        try:
            encodings = self._engine.encode_batch_fast(list(pieces), add_special_tokens=False)
        except (UnicodeEncodeError, TypeError):
            for piece in pieces:
                utf8(piece)  # names the character that has no UTF-8
            raise
        rows = [np.array(encoding.ids, dtype=np.uint32) for encoding in encodings]
        if self._lacking:
            rows = [np.where(row < self.vocab_size, row, np.uint32(self.special.unknown or 0)) for row in rows]
        return rows

    def pieces(self, text: str) -> list[str]:
        """The stretch of the text that each id of `encode` stands for, as it is written there."""
        if self._look_up is not None:
            return [self.decode([number]) for number in self._look_up(text)]
        encoding = self._engine.encode(text, add_special_tokens=False)
        return [text[start:end] for start, end in encoding.offsets]

    def encode_with_mask(self, text: str, mask: str = "[MASK]") -> Ids:
        """The ids of a text in which the word `mask` is read as the mask token, wherever it stands.

        Where tokens carry the space before them, so does the masked one. No other special token is recognised.
        """
        number = self.special.mask
        if number is None:
            raise UnsupportedError(
                f"this {self.kind} tokenizer has no mask token", expected="one made for filling in, with [MASK]"
            )
        if not mask:
            raise ConfigError("mask = ''", expected="the word that marks a gap, such as [MASK]")
        added = self._engine.get_added_tokens_decoder().get(number)
        pieces = text.split(mask)
        if added is not None and added.lstrip:  # a stranger's mask may take all the space around it
            pieces[:-1] = [piece.rstrip() for piece in pieces[:-1]]
        elif self.kind in ("bpe", "unigram", "words"):
            pieces[:-1] = [piece.removesuffix(" ") for piece in pieces[:-1]]
        if added is not None and added.rstrip:
            pieces[1:] = [piece.lstrip() for piece in pieces[1:]]
        gap = np.array([number], dtype=np.uint32)
        parts = [part for ids in self.encode_batch(pieces) for part in (gap, ids)]
        return np.concatenate(parts[1:])

    def encode_pair(self, first: str, second: str | None = None, max_length: int | None = None) -> Joined:
        """One text or two as BERT reads them: ids `[CLS] first [SEP] second [SEP]`, segments 0 for the first and its
        marks, 1 for the second. What is longer than `max_length` is cut, the longer text first."""
        return self.encode_pairs([(first, second)], max_length)[0]

    def encode_pairs(self, pairs: Sequence[tuple[str, str | None]], max_length: int | None = None) -> list[Joined]:
        """`encode_pair` for many, on all cores."""
        classify, separate = self._joints
        encoded = iter(self.encode_batch(flat(pairs)))
        return [
            join(next(encoded), None if second is None else next(encoded), classify, separate, max_length)
            for _, second in pairs
        ]

    @cached_property
    def _joints(self) -> tuple[int, int]:
        """The tokens that join texts as BERT does; a stranger's tokenizer may do it in another way."""
        classify, separate = self.special.classify, self.special.separate
        if classify is None or separate is None:
            raise UnsupportedError(
                f"this {self.kind} tokenizer has no tokens to join texts with", expected="one with [CLS] and [SEP]"
            )
        if self._engine.post_processor is not None:
            first, second = self.encode_batch(["a", "b c"])
            for other, theirs in ((None, self._engine.encode("a")), (second, self._engine.encode("a", "b c"))):
                ids, segments = join(first, other, classify, separate)
                if ids.tolist() != theirs.ids or segments.tolist() != theirs.type_ids:
                    raise UnsupportedError("this tokenizer joins texts in a way of its own", expected="BERT's way")
        return classify, separate

    # -- ids to text --------------------------------------------------------------------------

    @cached_property
    def names(self) -> list[str]:
        """What the vocabulary calls every id, as `tokenizer.json` has it; an id that no token has is called ""."""
        found = [""] * self.vocab_size
        for name, number in self._vocabulary.items():
            found[number] = name
        return found

    def spell(self, name: str) -> bytes:
        """The bytes of text that a token of this name stands for; of a special one, its name."""
        return self._spell(name)

    @cached_property
    def _spelling(self) -> list[bytes]:
        """The bytes of every id; special tokens stand for no text."""
        table = [b""] * self.vocab_size
        for token, number in self._vocabulary.items():
            table[number] = self._spell(token)
        for number, added in self._engine.get_added_tokens_decoder().items():
            if number < self.vocab_size:
                table[number] = b"" if added.special else added.content.encode()
        return table

    @cached_property
    def token_bytes(self) -> NDArray[np.int64]:
        """How many UTF-8 bytes of text each id stands for: (vocab_size,). For bits per byte.

        WordPiece knows nothing of spaces: there it is the length of the piece itself.
        """
        return np.array([len(spelled) for spelled in self._spelling], dtype=np.int64)

    def byte_length(self, ids: ArrayLike) -> int:
        """How many UTF-8 bytes of text these ids stand for."""
        return int(self.token_bytes[self._checked(ids)].sum())

    def decode_bytes(self, ids: ArrayLike) -> bytes:
        """The bytes that these ids spell; a sequence that was cut may end inside a character."""
        known = self._checked(ids)
        if self.kind in ("other", "wordpiece"):
            return self._engine.decode(known.tolist(), skip_special_tokens=True).encode()
        table = self._spelling
        return b"".join([table[number] for number in known.tolist()])

    def decode(self, ids: ArrayLike) -> str:
        """The text that these ids spell; bytes that are no UTF-8 show as U+FFFD."""
        return self.decode_bytes(ids).decode(errors="replace")

    def _checked(self, ids: ArrayLike) -> NDArray[np.int64]:
        known = np.asarray(ids, dtype=np.int64).ravel()
        if known.size and not 0 <= known.min() <= known.max() < self.vocab_size:
            raise DataError(
                f"token ids from {known.min()} to {known.max()}", expected=f"ids from 0 to {self.vocab_size - 1}"
            )
        return known

    # -- what the vocabulary does not know ----------------------------------------------------

    @cached_property
    def _single_bytes(self) -> NDArray[np.bool_]:
        """Which ids are bytes and not characters or words."""
        if self.kind in ("characters", "unigram"):
            named = np.zeros(self.vocab_size, dtype=bool)
            named[[self._vocabulary[name] for name in BYTE_NAMES]] = True
            return named
        return (self.token_bytes == 1) if self.kind == "words" else np.zeros(self.vocab_size, dtype=bool)

    def unseen_share(self, ids: ArrayLike) -> float:
        """The share of tokens that only spell something the vocabulary lacks (0 for bytes and BPE).

        For WordPiece it is the share of `[UNK]`.
        """
        known = self._checked(ids)
        if self.kind in ("other", "wordpiece"):
            unknown = self.special.unknown
            return float((known == unknown).mean()) if unknown is not None and known.size else 0.0
        spelled = self._single_bytes[known]
        if not spelled.any():
            return 0.0
        count = int(spelled.sum()) if self.kind in ("characters", "unigram") else self._spelled_words(known, spelled)
        return count / known.size

    def _spelled_words(self, known: NDArray[np.int64], spelled: NDArray[np.bool_]) -> int:
        """A byte alone may be a word of its own (a comma): count the bytes of words that take several."""
        edges = np.flatnonzero(np.diff(spelled, prepend=False, append=False))
        count = 0
        for first, after in edges.reshape(-1, 2).tolist():
            if after - first > 1:  # how space is split depends on what follows it, so look one token further
                words = self._engine.pre_tokenizer.pre_tokenize_str(self.decode(known[first : after + 1]))
                followed = after < known.size and self.token_bytes[known[after]] > 0
                count += sum(len(word) for word, _ in words[: len(words) - followed] if len(word) > 1)
        return count

    # -- files --------------------------------------------------------------------------------

    def to_json(self) -> str:
        """The text of a `tokenizer.json`."""
        return self._engine.to_str(pretty=True)

    @classmethod
    def from_json(
        cls,
        text: str | bytes,
        *,
        name: str = "tokenizer.json",
        ends: Sequence[str | int] = (END,),
        named: Mapping[str, Sequence[str]] | None = None,
    ) -> Self:
        """The inverse of `to_json`; `name` is what an error calls it, `ends` and `named` as for a new one."""
        advice = "is it a tokenizer.json of Weft or of Hugging Face, and complete?"
        try:
            settings = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{name} is not valid JSON ({_first_line(error)})", advice=advice) from None
        if not isinstance(settings, dict) or not isinstance(settings.get("model"), dict):
            raise DataError(f"{name} is JSON, but no tokenizer", advice=advice)
        settings["truncation"] = settings["padding"] = None  # a stranger's padding could ask for any memory
        try:
            return cls(tokenizers.Tokenizer.from_str(json.dumps(settings)), ends=ends, named=named)
        except DataError as error:
            raise DataError(f"{name}: {error}") from None
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except BaseException as error:  # the engine panics on some broken files, which is no `Exception`
            raise DataError(f"{name} cannot be used ({_first_line(error)})", advice=advice) from None

    def save(self, path: str | Path) -> None:
        """Write a `tokenizer.json`, which Hugging Face's `PreTrainedTokenizerFast` opens too.

        Special tokens with names of their own, such as another end of text than ours, are named in the
        `tokenizer_config.json` beside it.
        """
        Path(path).write_text(self.to_json(), encoding="utf-8", newline="\n")
        if self._unusual:
            named = json.dumps({ROLES[role]: name for role, name in self._unusual.items()}, ensure_ascii=False)
            Path(path).with_name("tokenizer_config.json").write_text(named + "\n", encoding="utf-8", newline="\n")

    @classmethod
    def load(cls, path: str | Path, *, ends: Sequence[str | int] = ()) -> Self:
        """Read a `tokenizer.json`. What ends a text is told by the files beside it, else one of `ends`, else ours."""
        named = names_beside(Path(path).parent)
        ends = [*named.get("end", ()), *ends, END]
        return cls.from_json(read_limited(Path(path)), name=str(path), ends=ends, named=named)

    @property
    def special_names(self) -> dict[str, str]:
        """The special tokens by the names that Hugging Face's files have for them (`mask_token`, …)."""
        return {ROLES[role]: name for role, name in self._names.items()}

    @property
    def engine(self) -> tokenizers.Tokenizer:
        """The tokenizer of the `tokenizers` library, to look at: a change in it would not be noticed here."""
        return self._engine

    @cached_property
    def fingerprint(self) -> str:
        """A sha256 of everything that decides about ids; the same for the same tokenizer in every file."""
        settings = json.loads(self._engine.to_str())
        cleaning = settings.get("normalizer") or {}
        if cleaning.get("type") == "BertNormalizer" and cleaning["strip_accents"] is None:  # which is not `false` here
            cleaning["strip_accents"] = cleaning["lowercase"]
        if puts_end_after(settings.get("post_processor"), self.end_name):
            settings["post_processor"] = None  # for other programs; here a text gets no token that was not asked for
        settings = _without_defaults(settings)
        if self.end_name != END:  # it stands between texts
            settings["end"] = self.end_name
        joints = {role: name for role, name in self._unusual.items() if role in ("classify", "separate", "mask")}
        if joints:
            settings["special"] = joints
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:120]


def _without_defaults(value: Any) -> Any:
    """Drop what is null or false: a later version of the engine may write fields that this one does not know.

    The last digits of a score go too: the engine does not read them exactly.
    """
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {k: _without_defaults(v) for k, v in value.items() if v is not None and v is not False}
    return [_without_defaults(item) for item in value] if isinstance(value, list) else value
