"""Words spelled in other ways while a model learns: "funny" as "fun" and "##ny", now and then.

A word that is met for the first time is spelled in pieces. A model that has seen words both whole and in pieces knows
what pieces mean, and does not lean on rare words alone (Provilkov et al. 2020, "BPE-Dropout"; for longest-match
schemes Hiraoka 2022, "MaxMatch-Dropout"). Which words when is a pure function of (seed, sample number, place).
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.data.keyed_draws import KeyedDraws, below, unit
from weft.text import Tokenizer
from weft.text.spelling import INSIDE

ROUNDS = 2  # a piece may be split once more
Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SubwordRegularisation:
    """For each id the pairs of tokens that spell the same: those from begins[id] to begins[id + 1]."""

    begins: Ids
    first: Ids
    second: Ids

    def __repr__(self) -> str:
        return f"SubwordRegularisation({len(self.begins) - 1} tokens, {len(self.first)} other spellings)"

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> SubwordRegularisation:
        """The tables of a tokenizer; special tokens have one spelling."""
        settings = json.loads(tokenizer.to_json())
        vocabulary = settings["model"].get("vocab", {})
        if isinstance(vocabulary, list):  # Unigram: token and score, in the order of ids
            vocabulary = {token: number for number, (token, _) in enumerate(vocabulary[: tokenizer.vocab_size])}
        pieces = settings["model"].get("type") == "WordPiece"
        special = {token["id"] for token in settings.get("added_tokens") or [] if token.get("special")}
        found: list[list[tuple[int, int]]] = [[] for _ in range(tokenizer.vocab_size)]
        for token, number in vocabulary.items():
            if number in special or number >= tokenizer.vocab_size:
                continue
            start = len(INSIDE) if pieces and token.startswith(INSIDE) else 0
            for cut in range(start + 1, len(token)):
                rest = (INSIDE if pieces else "") + token[cut:]
                if token[:cut] in vocabulary and rest in vocabulary:
                    found[number].append((vocabulary[token[:cut]], vocabulary[rest]))
        counts = np.array([0, *(len(pairs) for pairs in found)], dtype=np.int64)
        flat = np.array([pair for pairs in found for pair in pairs], dtype=np.int64).reshape(-1, 2)
        return cls(np.cumsum(counts), flat[:, 0], flat[:, 1])

    def respelled(
        self, ids: Ids, texts: Ids, numbers: NDArray[np.integer], share: float, chance: KeyedDraws
    ) -> tuple[Ids, Ids]:
        """The tokens of several texts with a share of them spelled otherwise, and for each new token its old place.

        `texts` says to which text each token belongs (0, 0, 0, 1, 1, …), `numbers` which sample each text is.
        """
        places = np.arange(len(ids))
        open_ = np.ones(len(ids), dtype=bool)
        for turn in range(ROUNDS):
            starts = np.searchsorted(texts, np.arange(len(numbers)))
            drawn = KeyedDraws.at(chance.of(numbers, f"respelling {turn}")[texts], np.arange(len(ids)) - starts[texts])
            counts = self.begins[ids + 1] - self.begins[ids]
            chosen = open_ & (counts > 0) & (unit(drawn) < share)
            pick = self.begins[ids[chosen]] + below(KeyedDraws.at(drawn[chosen], np.zeros(1, np.int64)), counts[chosen])
            repeats = 1 + chosen.astype(np.int64)
            there = np.cumsum(repeats)[chosen] - 2
            ids, texts, places = np.repeat(ids, repeats), np.repeat(texts, repeats), np.repeat(places, repeats)
            open_ = np.repeat(chosen, repeats)
            ids[there], ids[there + 1] = self.first[pick], self.second[pick]
        return ids, places
