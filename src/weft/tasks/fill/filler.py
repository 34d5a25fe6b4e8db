"""Filling the gaps of a text with a masked language model, and how often it is right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from weft.errors import ConfigError, DataError, UnsupportedError
from weft.models import FillsMasks, FillsSpans, PackedTexts
from weft.tasks.fill.results import Candidate, Filled, with_words
from weft.tasks.fill.span_filler import SpanFiller

if TYPE_CHECKING:
    from weft.tasks.run import Run

MASK = "[MASK]"


class Filler:
    """A run that fills in, opened: gap by gap, or by writing all gaps together."""

    def __init__(self, run: Run) -> None:
        config = run.model_config
        self._filled: Callable[[Sequence[str], int, str], list[Filled]]
        if FillsSpans in config.provides:
            self._filled = SpanFiller(run).filled
        elif FillsMasks in config.provides:
            self._filled = MaskedTokenFiller(run, config.context).filled
        else:
            raise refusal(run)

    def fill(self, texts: Sequence[str], *, top: int = 5, mask: str = MASK, strict: bool = True) -> list[Filled]:
        """What fits in place of `mask`, in each text; one without a gap is an error, or comes back as it is."""
        if top < 1:
            raise ConfigError(f"top = {top}", expected="at least 1")
        if not mask:
            raise ConfigError("mask = ''", expected="the word that marks a gap, such as [MASK]")
        gappy = [text for text in texts if mask in text]
        if strict and len(gappy) < len(texts):
            text = next(text for text in texts if mask not in text)
            raise DataError(f"no {mask} in {text[:60]!r}", expected=f"a text with a gap, such as 'The {mask} is blue.'")
        found = iter(self._filled(gappy, top, mask))
        return [next(found) if mask in text else Filled(text, [], text) for text in texts]


class MaskedTokenFiller:
    """The likeliest tokens of each gap."""

    def __init__(self, run: Run, length: int | None) -> None:
        self.run, self.length = run, length

    def filled(self, texts: Sequence[str], top: int, mask: str) -> list[Filled]:
        """What fits in place of `mask`, in each text."""
        return [self._fill(text, top, mask) for text in texts]

    def _fill(self, text: str, top: int, mask: str) -> Filled:
        tokenizer, model = self.run.tokenizer, self.run.model
        assert isinstance(model, FillsMasks)
        special = tokenizer.special
        if special.classify is None or special.separate is None:
            raise UnsupportedError(f"the tokenizer of {self.run.directory.path} has no [CLS] and [SEP]")
        ids = tokenizer.encode_with_mask(text, mask).astype(np.int64)
        if self.length is not None and len(ids) + 2 > self.length:
            raise DataError(
                f"a text of {len(ids) + 2} tokens", expected=f"at most {self.length}", advice="give a shorter text"
            )
        row = PackedTexts.of([np.concatenate([[special.classify], ids, [special.separate]])])
        with torch.inference_mode():
            places = torch.from_numpy(np.flatnonzero(ids == special.mask) + 1).to(self.run.device)
            states = row.to(self.run.device).states(self.run.model)[0, places]
            logits = model.masked_logits(states)[:, : tokenizer.vocab_size].float()
            logits[:, self._special_ids()] = -torch.inf  # they are no words
            chances, found = logits.softmax(-1).topk(min(top, tokenizer.vocab_size))
        gaps = [
            [self._candidate(n, p) for n, p in zip(numbers, shares, strict=True)]
            for numbers, shares in zip(found.tolist(), chances.tolist(), strict=True)
        ]
        return Filled(text, gaps, with_words(text, mask, [candidates[0].text for candidates in gaps]))

    def _special_ids(self) -> list[int]:
        """Tokens that are no text (special tokens)."""
        special = self.run.tokenizer.special
        given = (special.end, special.unknown, special.classify, special.separate, special.mask, special.pad)
        return [number for number in given if number is not None]

    def _candidate(self, number: int, probability: float) -> Candidate:
        return Candidate(self.run.tokenizer.decode([number]), probability)


def refusal(run: Run) -> UnsupportedError:
    return UnsupportedError(
        f"{run.directory.path} does not fill in",
        expected="a run of weft train fill with masked words or spans, or a BERT or T5 for them from Hugging Face",
    )
