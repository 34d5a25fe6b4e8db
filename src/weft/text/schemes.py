"""Schemes beside each other: how many tokens each needs for the same text, what it lacks, and what that costs a model.

Longer sequences and larger vocabularies are paid for in different places: attention compares every token of a
sequence with every other (n²), the rest of a layer works on each by itself (n), and the embedding holds a vector for
each entry of the vocabulary, whether the text has it or not.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.errors import DataError, did_you_mean
from weft.text.base import TokenizerConfig
from weft.text.corpus import Corpus
from weft.text.hugging_face import has_tokenizer, read_folder, read_source
from weft.text.spelling import utf8
from weft.text.tokenizer import Tokenizer

SCHEMES = ("characters", "words", "bytes", "bpe", "wordpiece", "unigram")
VOCAB_SIZE = 8192
SOURCE_FILE = "source_tokenizer.json"  # a run's, of what it reads where that is spelled otherwise than what it writes
FLOAT = 4  # bytes


@dataclass(frozen=True)
class TokenizerStatistics:
    """What one scheme makes of a text.

    unseen           share of the text, in bytes, that the vocabulary lacks: spelled byte by byte, or lost in `[UNK]`
    unseen_tokens    share of the tokens that are such bytes or `[UNK]`
    lengths          tokens of each line that is not blank; a model reads the lines one by one
    gives_back       whether the tokens spell exactly this text
    """

    name: str
    kind: str
    vocab_size: int
    characters: int
    bytes: int
    tokens: int
    unseen: float
    unseen_tokens: float
    lengths: tuple[int, ...]
    gives_back: bool

    @property
    def characters_per_token(self) -> float | None:
        """How much one token carries; None: there is none."""
        return self.characters / self.tokens if self.tokens else None

    @property
    def bytes_per_token(self) -> float | None:
        """The same in bytes of UTF-8, which is fairer to scripts that need several for a letter."""
        return self.bytes / self.tokens if self.tokens else None

    @property
    def mean_length(self) -> float:
        """Tokens of a line."""
        return sum(self.lengths) / len(self.lengths) if self.lengths else 0.0

    @property
    def longest(self) -> int:
        """Tokens of the longest line."""
        return max(self.lengths, default=0)

    @property
    def pairs(self) -> int:
        """Pairs of tokens that attention compares in one layer: n² for each line."""
        return sum(length * length for length in self.lengths)

    def embedding_bytes(self, width: int) -> int:
        """What the table of vectors takes at this width, in float32."""
        return self.vocab_size * width * FLOAT

    def to_dict(self, width: int, others: Sequence[TokenizerStatistics]) -> dict[str, Any]:
        """Everything by name; costs are relative to the cheapest of all."""
        return {
            "scheme": self.name,
            "kind": self.kind,
            "vocab_size": self.vocab_size,
            "tokens": self.tokens,
            "characters_per_token": self.characters_per_token,
            "bytes_per_token": self.bytes_per_token,
            "unseen": self.unseen,
            "unseen_tokens": self.unseen_tokens,
            "gives_text_back": self.gives_back,
            "mean_length": self.mean_length,
            "longest_length": self.longest,
            "attention_cost": relative(self.pairs, [other.pairs for other in others]),
            "feed_forward_cost": relative(sum(self.lengths), [sum(other.lengths) for other in others]),
            "embedding_parameters": self.vocab_size * width,
            "embedding_bytes": self.embedding_bytes(width),
        }


def relative(cost: float, costs: Iterable[float]) -> float | None:
    """How many times the cheapest; None where one of them is free."""
    cheapest = min(costs)
    return cost / cheapest if cheapest else None


# -- the schemes ------------------------------------------------------------------------------


def learn_scheme(kind: str, pieces: Iterable[str], vocab_size: int = VOCAB_SIZE) -> Tokenizer:
    """A scheme of the registry that has read these texts, with at most so many tokens if that is for it to choose."""
    config = TokenizerConfig.from_config(kind)
    if "vocab_size" in config.to_dict():
        config = config.override({"vocab_size": vocab_size})
    return config.train(pieces)


def is_path(word: str) -> bool:
    """Whether a word means a tokenizer on the disk and not a scheme."""
    known = {*TokenizerConfig.registry, *TokenizerConfig.registry.aliases}
    return word not in known and (os.path.exists(word) or "/" in word or os.sep in word or word.endswith(".json"))


def open_tokenizers(path: str) -> dict[str, Tokenizer]:
    """The tokenizers of a run, a Hugging Face folder or a `tokenizer.json`, by what to call them; rarely two."""
    place = Path(path)
    if not place.exists():
        near = [item.name for item in place.parent.iterdir()] if place.parent.is_dir() else []
        hint = did_you_mean(place.name, near)
        raise DataError(
            f"{path} does not exist",
            expected="a run, or a tokenizer.json",
            advice=hint if "did you" in hint else "",
        )
    if place.is_file():
        return {path: Tokenizer.load(place)}
    if not has_tokenizer(place):
        raise DataError(f"{path} has no tokenizer", expected="a run that reads text, or a tokenizer.json")
    writes = read_folder(place)
    source = place / SOURCE_FILE
    reads = Tokenizer.load(source) if source.is_file() else read_source(place)
    return {path: writes} if reads is None else {f"{path} (reads)": reads, f"{path} (writes)": writes}


# -- measuring --------------------------------------------------------------------------------


def measure(name: str, tokenizer: Tokenizer, texts: Sequence[Corpus], most: int | None = None) -> TokenizerStatistics:
    """Count; of texts with more than `most` characters only so many of the beginning are read."""
    characters = size = tokens = lost = lost_tokens = 0
    lengths: list[int] = []
    exact = True
    for text in texts:
        left = None if most is None else most - characters
        if left is not None and left <= 0:
            break
        pieces = list(text.pieces(stop=left))
        lengths += _line_lengths(tokenizer, pieces)
        for piece, ids in zip(pieces, tokenizer.encode_batch(pieces), strict=True):
            raw = utf8(piece)
            characters, size, tokens = characters + len(piece), size + len(raw), tokens + len(ids)
            spelled = round(tokenizer.unseen_share(ids) * len(ids))
            lost_tokens += spelled
            lost += _lost_bytes(tokenizer, piece) if spelled and _has_unknown(tokenizer) else spelled
            exact = exact and tokenizer.decode_bytes(ids) == raw
    return TokenizerStatistics(
        name=name,
        kind=tokenizer.kind,
        vocab_size=tokenizer.vocab_size,
        characters=characters,
        bytes=size,
        tokens=tokens,
        unseen=lost / size if size else 0.0,
        unseen_tokens=lost_tokens / tokens if tokens else 0.0,
        lengths=tuple(lengths),
        gives_back=exact,
    )


def _has_unknown(tokenizer: Tokenizer) -> bool:
    """Whether what is unseen is one token, however long; elsewhere it is a token for each byte."""
    return tokenizer.kind in ("wordpiece", "other")


def _lost_bytes(tokenizer: Tokenizer, piece: str) -> int:
    """Bytes of the text that are `[UNK]`."""
    stretches = zip(tokenizer.encode(piece), tokenizer.pieces(piece), strict=True)
    return sum(len(utf8(stretch)) for number, stretch in stretches if number == tokenizer.special.unknown)


def _line_lengths(tokenizer: Tokenizer, pieces: Iterable[str]) -> list[int]:
    """Tokens of each line that is not blank, without the newline; a line may go on in the next piece."""
    counts: list[int] = []
    blank: list[bool] = []
    for lines in (piece.split("\n") for piece in pieces):
        found = [len(ids) for ids in tokenizer.encode_batch(lines)]
        empty = [not line.strip() for line in lines]
        if counts:
            counts[-1] += found.pop(0)
            blank[-1] &= empty.pop(0)
        counts += found
        blank += empty
    return [count for count, is_blank in zip(counts, blank, strict=True) if not is_blank]


def excerpts(texts: Sequence[Corpus], characters: int) -> Iterator[str]:
    """The beginning of each text, so many characters in all, none cut inside a word if that can be helped."""
    left = characters
    for text in texts:
        if left <= 0:
            return
        start = "".join(text.pieces(stop=left + 1))
        if len(start) > left:
            start = start[: left + 1]
            edge = max(start.rfind(" "), start.rfind("\n"))
            start = start[: edge if edge > left // 2 else left]
        left -= max(1, len(start))
        yield start
