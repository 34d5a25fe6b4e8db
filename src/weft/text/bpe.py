"""Byte-pair encoding: start from bytes, and join the most frequent pair again and again
(Sennrich, Haddow & Birch 2016; on bytes as in GPT-2, Radford et al. 2019)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from weft.config import Size
from weft.errors import ConfigError
from weft.text.base import Progress, TokenizerConfig, finished, for_the_engine, room_besides
from weft.text.spelling import BYTE_CHARACTERS
from weft.text.tokenizer import Tokenizer


class BPEConfig(TokenizerConfig, kind="bpe", aliases=("subwords", "byte-pair")):
    """Sub-words: frequent words are one token, rare ones a few; a small text gives fewer than `vocab_size`."""

    vocab_size: Size = 8192

    def check(self) -> None:
        if self.vocab_size < 257:
            raise ConfigError(f"vocab_size = {self.vocab_size}", expected="at least 257: the bytes and the end of text")

    def train(
        self, pieces: Iterable[str], *, progress: Progress | None = None, special: Sequence[str] = ()
    ) -> Tokenizer:
        """The 256 bytes, then the merges in the order they were learned, then the end of text."""
        engine = tokenizers.Tokenizer(models.BPE())
        engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        engine.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=room_besides(special, self.vocab_size),
            min_frequency=2,
            initial_alphabet=sorted(BYTE_CHARACTERS),
            special_tokens=[],
            show_progress=False,
        )
        engine.train_from_iterator(for_the_engine(pieces, progress), trainer)
        return finished(engine, special)
