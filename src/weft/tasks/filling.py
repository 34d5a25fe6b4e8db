"""Using a model that fills in: what may stand in the gaps of a text, and how often it is right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from weft.data.pretraining import ENTAILMENT, MASKED
from weft.errors import ConfigError, DataError, UnsupportedError
from weft.models import BERT, BERTConfig, T5Config, TextRow
from weft.models.bert import MaskedConfig
from weft.objectives import ObjectiveConfig
from weft.tasks.filled import Candidate, Filled, with_words
from weft.tasks.filling_spans import SpanFiller
from weft.tasks.purpose import purpose
from weft.tasks.sources import are_tables
from weft.training import ALONE, TrainingConfig

if TYPE_CHECKING:
    from weft.tasks.fill_texts import FillDataConfig
    from weft.tasks.run import Run

MASK = "[MASK]"


class Filler:
    """A run that fills in, opened: a bert, gap by gap, or a t5, which writes all gaps together."""

    def __init__(self, run: Run) -> None:
        config = run.model_config
        self._filled: Callable[[Sequence[str], int, str], list[Filled]]
        if isinstance(config, T5Config):
            self._filled = SpanFiller(run).filled
        elif isinstance(config, BERTConfig) and isinstance(config.head, MaskedConfig):
            self._filled = MaskFiller(run, config.max_length).filled
        else:
            raise _refusal(run)

    def fill(self, texts: Sequence[str], *, top: int = 5, mask: str = MASK, strict: bool = True) -> list[Filled]:
        """What may stand where `mask` does, in each text; one without a gap is an error, or comes back as it is."""
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


class MaskFiller:
    """A bert: the likeliest tokens of each gap."""

    def __init__(self, run: Run, length: int) -> None:
        self.run, self.length = run, length

    def filled(self, texts: Sequence[str], top: int, mask: str) -> list[Filled]:
        """What may stand where `mask` does, in each text."""
        return [self._fill(text, top, mask) for text in texts]

    def _fill(self, text: str, top: int, mask: str) -> Filled:
        tokenizer, model = self.run.tokenizer, self.run.model
        assert isinstance(model, BERT)
        special = tokenizer.special
        if special.classify is None or special.separate is None:
            raise UnsupportedError(f"the tokenizer of {self.run.directory.path} has no [CLS] and [SEP]")
        ids = tokenizer.encode_with_mask(text, mask).astype(np.int64)
        if len(ids) + 2 > self.length:
            raise DataError(
                f"a text of {len(ids) + 2} tokens", expected=f"at most {self.length}", advice="give a shorter text"
            )
        row = TextRow.of([np.concatenate([[special.classify], ids, [special.separate]])])
        with torch.inference_mode():
            places = torch.from_numpy(np.flatnonzero(ids == special.mask) + 1).to(self.run.device)
            states = row.to(self.run.device).states(model)[0, places]
            logits = model.masked_logits(states)[:, : tokenizer.vocab_size].float()
            logits[:, self._special_ids()] = -torch.inf  # they are no words
            chances, found = logits.softmax(-1).topk(min(top, tokenizer.vocab_size))
        gaps = [
            [self._candidate(n, p) for n, p in zip(numbers, shares, strict=True)]
            for numbers, shares in zip(found.tolist(), chances.tolist(), strict=True)
        ]
        return Filled(text, gaps, with_words(text, mask, [candidates[0].text for candidates in gaps]))

    def _special_ids(self) -> list[int]:
        """Tokens that stand for no text."""
        special = self.run.tokenizer.special
        given = (special.end, special.unknown, special.classify, special.separate, special.mask, special.pad)
        return [number for number in given if number is not None]

    def _candidate(self, number: int, probability: float) -> Candidate:
        return Candidate(self.run.tokenizer.decode([number]), probability)


def _refusal(run: Run) -> UnsupportedError:
    return UnsupportedError(
        f"{run.directory.path} does not fill in",
        expected="a run of weft train fill with masked words or spans, or a BERT or T5 for them from Hugging Face",
    )


def evaluate_fill(run: Run, *data: str) -> dict[str, Any]:
    """Loss, and how often each task is right: on what the run held out, its test if it has one, or other text.

    A run that only learned about pairs is measured too. Other text has no labelled pairs: entailment is left out.
    """
    from weft.tasks.fill import training_of
    from weft.tasks.fill_texts import FillConfig, read_fill_source, read_texts

    config = None if run.is_imported else run.config
    if config is None and purpose(run.model_config) != "fill":
        raise _refusal(run)
    if config is None and not data:
        raise DataError(
            f"{run.directory.path} was not trained here: it has no text of its own",
            expected="text to measure it on",
            advice=f"weft evaluate {run.directory.path} book.txt",
        )
    assert config is None or isinstance(config, FillConfig)
    if config is None or data:
        config = FillConfig(
            model=run.model_config,
            tokenizer=None,
            data=_other_data(data, None if config is None else config.data),
            training=TrainingConfig(steps=1, batch=1, device=str(run.device)),
            objective=ObjectiveConfig() if config is None else _without_entailment(config.objective),
        )
    texts = read_texts(read_fill_source(config.data), config.data, run.tokenizer, lambda _: None)
    part = "test" if "test" in texts.parts else "validation"
    metrics = training_of(config, texts).measure(run.model, part, ALONE)
    told = {name.removeprefix("validation_"): value for name, value in metrics.items()}
    return {**told, "tokens": len(texts.parts[part].ids), "measured_on": "data" if data else part}


def _without_entailment(objective: ObjectiveConfig) -> ObjectiveConfig:
    """What can be asked about a text without labelled pairs."""
    tasks = tuple(task for task in objective.tasks if task != ENTAILMENT)
    if not tasks:
        raise DataError("entailment is measured on labelled pairs", expected="no other text: the run has its own")
    return objective.override({"tasks": tasks} | ({} if set(tasks) - {MASKED} else {"pair_weight": None}))


def _other_data(paths: tuple[str, ...], known: FillDataConfig | None) -> FillDataConfig:
    """Other text, read as the run read its own."""
    from weft.tasks.fill_texts import FillDataConfig

    length, column = (None, None) if known is None else (known.length, known.text)
    return FillDataConfig(train=paths, validation=paths, length=length, text=column if are_tables(paths) else None)
