"""Byte-pair encoding in slow motion: the merges that turn a sentence into its tokens, one after the other.

A tokenizer cuts a text into words and writes each as bytes (or characters). Then, again and again, the neighbours that
its list of merges has first become one (Sennrich, Haddow & Birch 2016). The list is in the order in which the merges
were learned, and each was the most frequent pair of its time: so a tokenizer that has learned from this very sentence
shows how it learns, and any other one how it reads.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from weft.errors import UnsupportedError
from weft.text.bpe import BPEConfig
from weft.text.spelling import BYTE_NAMES, utf8
from weft.text.tokenizer import Tokenizer

Pair = tuple[str, str]


@dataclass(frozen=True)
class Merge:
    """One step.

    rank      the place of this merge in the tokenizer's list, from 0
    pair      the two neighbours, as the vocabulary writes them; `joined` is what they become
    count     how often they stood beside each other
    tokens    the whole text after this step
    """

    rank: int
    pair: Pair
    joined: str
    count: int
    tokens: tuple[str, ...]


@dataclass(frozen=True)
class Replay:
    """A text before the first merge, and each merge that changes it. Tokens are as the vocabulary writes them."""

    tokenizer: Tokenizer
    text: str
    start: tuple[str, ...]
    merges: tuple[Merge, ...]

    @property
    def end(self) -> tuple[str, ...]:
        """The tokens of the text."""
        return self.merges[-1].tokens if self.merges else self.start


def learn(text: str, vocab_size: int = BPEConfig().vocab_size) -> Tokenizer:
    """Byte-pair encoding that has read nothing but this text: merges until no pair occurs twice in it."""
    return BPEConfig(vocab_size=vocab_size).train([text])


def replay(tokenizer: Tokenizer, text: str) -> Replay:
    """Each merge that the tokenizer makes on the way to its tokens of this text.

    What comes out is compared with what the tokenizer itself says; one that goes another way is refused.
    """
    utf8(text)
    model = _model(tokenizer)
    ranks: dict[Pair, int] = {_pair(pair): rank for rank, pair in reversed(list(enumerate(model["merges"])))}
    words = [_letters(word, model) for word in _words(tokenizer, text)]
    start = _flat(words)
    merges: list[Merge] = []
    while step := _next(words, ranks):
        merges.append(step)
    found = Replay(tokenizer, text, start, tuple(merges))
    wanted = tuple(tokenizer.names[number] for number in tokenizer.encode(text))
    if found.end != wanted:
        raise UnsupportedError(
            "this tokenizer does not read the text by merges alone", expected="byte-pair encoding without exceptions"
        )
    return found


def _model(tokenizer: Tokenizer) -> dict[str, Any]:
    """The list of merges and the vocabulary."""
    model: dict[str, Any] = json.loads(tokenizer.engine.to_str())["model"]
    if model.get("type") != "BPE" or not model.get("merges"):
        learns = "cuts without merges" if model.get("type") == "BPE" else "does not learn by merges"
        what = tokenizer.kind if tokenizer.kind != "other" else model.get("type")
        raise UnsupportedError(f"the scheme {what!r} {learns}", expected="a bpe tokenizer that has learned some")
    odd = [name for name in ("dropout", "continuing_subword_prefix", "end_of_word_suffix") if model.get(name)]
    if odd:
        raise UnsupportedError(f"a byte-pair encoding with a {odd[0].replace('_', ' ')}", expected="one without")
    return model


def _pair(merge: str | Sequence[str]) -> Pair:
    first, second = merge.split(" ") if isinstance(merge, str) else merge
    return first, second


def _words(tokenizer: Tokenizer, text: str) -> list[str]:
    """The words that merges stay inside of, written in the letters of the vocabulary."""
    engine = tokenizer.engine
    if engine.normalizer is not None:
        text = engine.normalizer.normalize_str(text)
    if engine.pre_tokenizer is None:
        return [text] if text else []
    return [word for word, _ in engine.pre_tokenizer.pre_tokenize_str(text)]


def _letters(word: str, model: dict[str, Any]) -> list[str]:
    """What merging begins with: letters, or the bytes of those that the vocabulary lacks."""
    vocabulary = model["vocab"]
    if model.get("ignore_merges") and word in vocabulary:
        return [word]
    letters: list[str] = []
    for letter in word:
        letters += [letter] if letter in vocabulary else [BYTE_NAMES[value] for value in letter.encode()]
    return letters


def _flat(words: Sequence[Sequence[str]]) -> tuple[str, ...]:
    return tuple(token for word in words for token in word)


def _next(words: list[list[str]], ranks: dict[Pair, int]) -> Merge | None:
    """Make the merge that comes first in the list, wherever it applies; None when there is nothing left to merge."""
    beside = [pair for word in words for pair in itertools.pairwise(word) if pair in ranks]
    if not beside:
        return None
    pair = min(beside, key=ranks.__getitem__)
    words[:] = [_merged(word, pair, ranks) for word in words]
    return Merge(ranks[pair], pair, pair[0] + pair[1], beside.count(pair), _flat(words))


def _merged(word: list[str], pair: Pair, ranks: dict[Pair, int]) -> list[str]:
    """The word with this pair joined, from left to right.

    In a list that nobody learned a joined token may have a neighbour with which it comes earlier still; then that
    is the next step, before the rest of this one.
    """
    done: list[str] = []
    place = 0
    while place < len(word):
        if (word[place], *word[place + 1 : place + 2]) != pair:
            done.append(word[place])
            place += 1
            continue
        done.append(pair[0] + pair[1])
        place += 2
        near = itertools.pairwise([*done[-2:], *word[place : place + 1]])
        if any(ranks.get(beside, ranks[pair]) < ranks[pair] for beside in near):
            return done + word[place:]
    return done
