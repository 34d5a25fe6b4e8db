"""Unigram: of all ways to cut a word into known pieces, the most probable one counts, and of many candidates those
pieces stay that the text would miss most (Kudo 2018, "Subword Regularization"; as in T5, Raffel et al. 2020).

A word keeps the space before it, and what the pieces lack is spelled as UTF-8 bytes, so every text comes back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import numpy as np
import tokenizers
from tokenizers import Regex, decoders, models, pre_tokenizers, trainers

from weft.config import Size
from weft.errors import ConfigError
from weft.text.base import Progress, TokenizerConfig, character_counts, finished, for_the_engine, room_besides
from weft.text.recognise import WORD_PATTERN
from weft.text.spelling import BYTE_NAMES
from weft.text.tokenizer import Tokenizer

LONGEST_PIECE = 16  # characters
LONGEST_WORD = 32  # characters; longer ones are cut while learning, for their probability would be nothing
ENOUGH = 1_000_000  # characters of different words; of a text with more, pieces here and there are read
MARK, HOLE = "\ufdd0", "\ufdd1"  # Unicode keeps these two free for such use: no text has them
DIGITS = 4  # of a score; the engine adds in another order each time, so the last ones differ from run to run


class UnigramConfig(TokenizerConfig, kind="unigram"):
    """Sub-words as T5 has them; a small text gives fewer than `vocab_size`.

    A character that was seen only once is left out, so that a model meets spelled characters while it trains.
    """

    vocab_size: Size = 8192

    def check(self) -> None:
        if self.vocab_size < 257:
            raise ConfigError(f"vocab_size = {self.vocab_size}", expected="at least 257: the bytes and the end of text")

    def train(
        self, pieces: Iterable[str], *, progress: Progress | None = None, special: Sequence[str] = ()
    ) -> Tokenizer:
        """Ids 0 … 255 are bytes, then come pieces from the most probable on, then the end of text."""
        scores = _learned(list(for_the_engine(pieces, progress)), room_besides(special, self.vocab_size) - 256)
        lowest = min(scores.values(), default=0.0)
        learned = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        # a byte's name is never met in a text: the marks and the letters of it are different words
        model = models.Unigram([*((name, lowest) for name in BYTE_NAMES), *learned], unk_id=0, byte_fallback=True)
        engine = tokenizers.Tokenizer(model)
        engine.pre_tokenizer = pre_tokenizers.Split(Regex(WORD_PATTERN), behavior="isolated")
        engine.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
        return finished(engine, special)


def _learned(texts: Sequence[str], room: int) -> dict[str, float]:
    """At most `room` pieces and their log-probabilities; the same text gives the same ones."""
    counts = character_counts(texts)
    seen = np.flatnonzero(counts)
    counts[[0, ord(MARK), ord(HOLE)]] = 0  # the engine puts U+0000 between words
    often = seen[counts[seen] > 1]
    letters = set(often[np.argsort(-counts[often], kind="stable")][: room // 2].tolist())
    if not letters:
        return {}
    rare = {number: HOLE for number in seen.tolist() if number not in letters}
    texts = [text.translate(rare) for text in texts] if rare else texts
    pattern = WORD_PATTERN.replace("+", f"{{1,{LONGEST_WORD}}}")
    words = _words(texts, pattern)
    texts = texts[:: 1 + sum(map(len, words)) // ENOUGH]
    marked = [word + MARK for word in words if 1 < len(word) <= LONGEST_PIECE][:room]
    trainer = trainers.UnigramTrainer(
        vocab_size=room + 1 + bool(marked),  # what is unknown, and the mark, go again
        special_tokens=[HOLE],
        unk_token=HOLE,
        max_piece_length=LONGEST_PIECE,
        n_sub_iterations=4,  # at first it underrates what stands in few words: with 2, " ," would be lost
        shrinking_factor=0.7,
        show_progress=False,
    )
    engine = tokenizers.Tokenizer(models.Unigram())
    engine.pre_tokenizer = _splitter(f"(?:{pattern}){MARK}?")
    # The engine looks for candidates in the list of different words, and only takes what it finds there twice. A
    # frequent word that no other contains, such as " and", would have to be spelled; with a mark it is there twice.
    engine.train_from_iterator([*texts, *marked], trainer)
    found: dict[str, float] = {}
    for token, score in json.loads(engine.to_str())["model"]["vocab"]:
        if MARK not in token and token != HOLE and score is not None:  # none: the engine was left with nothing
            found[token] = score
    # letters that the engine lost on the way have the lowest score and a little more, in no certain order
    lowest = min(found.values(), default=0.0)
    lost = lowest + 1e-4 * len(letters)
    found |= {letter: lowest for letter in map(chr, letters) if found.get(letter, lowest) < lost}
    spare = sorted((token for token in found if len(token) > 1), key=lambda token: (found[token], token))
    for token in spare[: max(0, len(found) - room)]:  # letters that stand in none of the texts that were read
        del found[token]
    return {token: round(score, DIGITS) for token, score in found.items()}


def _words(texts: Sequence[str], pattern: str) -> list[str]:
    """All different words from the most frequent on."""
    counter = tokenizers.Tokenizer(models.WordLevel())
    counter.pre_tokenizer = _splitter(pattern)
    counter.train_from_iterator(texts, trainers.WordLevelTrainer(vocab_size=2**31, show_progress=False))
    ranks: dict[str, int] = counter.get_vocab()
    return sorted(ranks, key=ranks.__getitem__)


def _splitter(pattern: str) -> pre_tokenizers.PreTokenizer:
    """Text to words, without the characters that are left out."""
    holes = pre_tokenizers.Split(HOLE, behavior="removed")
    return pre_tokenizers.Sequence([holes, pre_tokenizers.Split(Regex(pattern), behavior="isolated")])
