"""What training on text needs before it can begin: texts as tokens, and a tokenizer made from them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from weft.data import TokenFile, tokenise
from weft.errors import DataError
from weft.models import ModelConfig, WordVectorTable
from weft.tasks.environment import check_fits
from weft.tasks.recording import Report
from weft.tasks.sources import Source
from weft.text import Tokenizer, TokenizerConfig

MAX_TOKENIZER_CHARACTERS = 50_000_000  # characters from which sub-words are learned
ENCODER_TOKENS = ("[PAD]", "[CLS]", "[SEP]", "[MASK]")  # what a model that reads needs besides the text
MAX_BYTES_IN_MEMORY = 64 * 2**20  # texts up to this many bytes are tokenised in memory


@dataclass(frozen=True)
class TokenisedSplits:
    """The texts of a run as tokens; what is to be tested on is not looked at before the end."""

    source: Source
    tokenizer: Tokenizer
    train: TokenFile
    validation: TokenFile
    test: TokenFile | None = None

    def part(self, name: str) -> TokenFile:
        """ "validation" or "test", if there is one."""
        found = {"validation": self.validation, "test": self.test}[name]
        assert found is not None
        return found

    @property
    def evaluated_tokens(self) -> int:
        """Tokens that are evaluated once training is over."""
        return len(self.validation) + (len(self.test) if self.test is not None else 0)


def check_model(
    model: ModelConfig, tokenizer: Tokenizer | None, where: str, source_tokenizer: Tokenizer | None = None
) -> None:
    """What files say of a model must make sense together before it is built; images have no tokenizer."""
    if WordVectorTable in model.provides:  # its rows are words: several tokens may be one
        tokenizer = source_tokenizer = None
    known = getattr(model, "vocab_size", 0)
    read = getattr(model, "source_vocab_size", None) or known
    for name, found, most in (
        ("tokenizer.json", tokenizer, known),
        ("the tokenizer of its sources", source_tokenizer or tokenizer, read),
    ):
        if found is not None and found.vocab_size > most:
            raise DataError(
                f"{name} has {found.vocab_size} tokens, the model in {where} knows {most}",
                expected="the tokenizer that the model was trained with",
            )
    check_fits(sum(p.numel() for p in model.skeleton().parameters()), where)


def learned_tokenizer(
    config: TokenizerConfig, pieces: Iterable[str], total: int, report: Report, special: Sequence[str] = ()
) -> Tokenizer:
    """A tokenizer made from the text to learn from, `total` characters of it; an encoder needs `special` tokens too."""
    phase = "learning the vocabulary"
    if config.kind != "bytes":  # there is nothing to learn
        report({"event": "phase", "name": phase, "total": total})

    def progress(done: int) -> None:
        report({"event": "progress", "phase": phase, "done": done, "total": total})

    return config.train(pieces, progress=progress, special=special)


def train_tokenizer(config: TokenizerConfig, source: Source, report: Report, special: Sequence[str] = ()) -> Tokenizer:
    """The same from a text that may be huge: only its beginning is used, more adds nothing to sub-words."""
    total = source.train.characters
    if config.kind in ("bpe", "unigram", "words", "wordpiece"):
        total = min(total, MAX_TOKENIZER_CHARACTERS)
    return learned_tokenizer(config, source.train.pieces(stop=total), total, report, special)


def tokenised(source: Source, tokenizer: Tokenizer, report: Report) -> TokenisedSplits:
    """All texts as tokens: in memory, or in files if they are large."""
    folder = None if source.config.bytes < MAX_BYTES_IN_MEMORY else cache_folder()
    corpora = [source.train, source.validation, *([source.test] if source.test is not None else [])]
    total = sum(corpus.characters for corpus in corpora)
    report({"event": "phase", "name": "tokenising", "total": total})
    before, tokens = 0, []
    for corpus in corpora:

        def progress(done: int, _: int, before: int = before) -> None:
            report({"event": "progress", "phase": "tokenising", "done": before + done, "total": total})

        tokens.append(tokenise(corpus, tokenizer, folder, progress=progress))
        before += corpus.characters
    for corpus, found in zip(corpora[1:], tokens[1:], strict=True):
        if len(found) < 2:
            name = corpus.documents[-1].name
            raise DataError(f"{len(found)} tokens of {name} to measure on", expected="at least 2", advice="give more")
    return TokenisedSplits(source, tokenizer, *tokens)


def cache_folder() -> Path:
    """Where token files of large texts are kept; `WEFT_CACHE` moves it."""
    return Path(os.environ.get("WEFT_CACHE", Path.home() / ".cache" / "weft"))
