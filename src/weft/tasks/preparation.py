"""What training needs before it can begin: settings, texts as tokens, and a tokenizer made from them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from weft.config import Config
from weft.data import TokenFile, Windows, tokenise
from weft.errors import ConfigError, DataError, UnsupportedError
from weft.models import GPTConfig, ModelConfig, preset
from weft.tasks.environment import check_fits
from weft.tasks.job import Report
from weft.tasks.sources import DataConfig, Source
from weft.text import Tokenizer, TokenizerConfig
from weft.training import TrainingConfig

SAMPLE = 50_000_000  # characters from which sub-words are learned
IN_MEMORY = 64 * 2**20  # texts up to this many bytes are tokenised in memory


class GenerateConfig(Config):
    """All settings of a run that learns to write."""

    model: ModelConfig
    tokenizer: TokenizerConfig | None  # None: it came with the model that training began from
    data: DataConfig
    training: TrainingConfig
    start: str | None = None  # the run or folder whose weights it began with; its first checkpoint holds them


@dataclass(frozen=True)
class Texts:
    """The texts of a run as tokens; what is to be tested on is not looked at before the end."""

    source: Source
    tokenizer: Tokenizer
    train: TokenFile
    validation: TokenFile
    test: TokenFile | None = None

    @property
    def judged(self) -> int:
        """Tokens that are evaluated once training is over."""
        return len(self.validation) + (len(self.test) if self.test is not None else 0)


@dataclass
class Prepared:
    """Everything that training needs."""

    config: GenerateConfig
    texts: Texts

    @property
    def length(self) -> int:
        assert isinstance(self.config.model, GPTConfig)
        longest = self.config.model.max_length
        return min(longest, self.config.data.length or longest, len(self.texts.train) - 1)

    def samples(self) -> Callable[[np.ndarray], Tensor]:
        windows = Windows(self.texts.train, self.length, self.config.training.seed)
        return lambda numbers: torch.from_numpy(windows.batch(numbers))


def check_model(model: ModelConfig, tokenizer: Tokenizer, where: str) -> None:
    """What files say of a model must make sense together before it is built."""
    known = getattr(model, "vocab_size", 0)
    if tokenizer.vocab_size > known:
        raise DataError(
            f"tokenizer.json has {tokenizer.vocab_size} tokens, the model in {where} knows {known}",
            expected="the tokenizer that the model was trained with",
        )
    check_fits(sum(p.numel() for p in model.skeleton().parameters()), where)


def check_writes(name: str) -> None:
    """Refuse a model that reads in both directions: it cannot go on with a text."""
    family, _ = preset(name)
    if family != "gpt":
        raise UnsupportedError(
            f"{name} reads text and does not write", expected="a gpt", advice="weft train --model gpt"
        )


def check_gives_text_back(config: TokenizerConfig) -> None:
    """What a model writes is read by people: its tokens must spell text exactly."""
    if not config.gives_text_back:
        exact = [kind for kind, entry in TokenizerConfig.menu.items() if getattr(entry, "gives_text_back", False)]
        raise ConfigError(
            f"the tokenizer {config.kind!r} is not for writing: it does not give text back",
            expected=f"one of {', '.join(exact)}",
        )


def learned_tokenizer(config: TokenizerConfig, source: Source, report: Report) -> Tokenizer:
    """A tokenizer made from the text to learn from; of a huge one, the rest adds nothing to sub-words."""
    total = source.train.characters
    if config.kind in ("bpe", "words", "wordpiece"):
        total = min(total, SAMPLE)
    phase = "learning the vocabulary"
    if config.kind != "bytes":  # there is nothing to learn
        report({"event": "phase", "name": phase, "total": total})

    def progress(done: int) -> None:
        report({"event": "progress", "phase": phase, "done": done, "total": total})

    return config.train(source.train.pieces(stop=total), progress=progress)


def tokenised(source: Source, tokenizer: Tokenizer, report: Report) -> Texts:
    """All texts as tokens: in memory, or in files if they are large."""
    folder = None if source.config.bytes < IN_MEMORY else cache_folder()
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
    return Texts(source, tokenizer, *tokens)


def cache_folder() -> Path:
    """Where token files of large texts are kept; `WEFT_CACHE` moves it."""
    return Path(os.environ.get("WEFT_CACHE", Path.home() / ".cache" / "weft"))
