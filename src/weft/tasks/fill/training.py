"""Training to fill in, for masked tokens and for spans: samples by number, and their evaluation."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import nn

from weft.errors import DataError
from weft.tasks.experiment import NO_ORIGIN, Experiment, Origin
from weft.tasks.fill.texts import FillConfig, FillTexts
from weft.tasks.validation_inputs import ValidationInputs, some_of
from weft.text import Tokenizer
from weft.training import Ranks
from weft.training.sums import LossSums

LENGTH_SAMPLES = 256  # samples from which the usual length is estimated
EVALUATION_SEED = 1  # hides the same tokens of the validation text in every run


@dataclass
class FillTraining(Experiment):
    """Sentences, from which samples are made as they are needed."""

    task_name = "fill"
    config: FillConfig
    texts: FillTexts
    origin: Origin = NO_ORIGIN

    @property
    def tokenizer(self) -> Tokenizer:  # type: ignore[override]
        return self.texts.tokenizer

    @property
    def length(self) -> int:
        """Tokens of a sample at most."""
        most: int = self.config.model.max_length  # type: ignore[attr-defined]
        return min(most, self.config.data.length or most)

    @abstractmethod
    def made_from(self, part: str, seed: int) -> Any:
        """Samples of one part of the text, `per_epoch` of them."""

    @abstractmethod
    def batch(self, samples: Any, numbers: np.ndarray) -> Any:
        """Those with these numbers, as the loss wants them."""

    @property
    @abstractmethod
    def usual(self) -> float:
        """Tokens of a sample on average, which may be far below the most."""

    @property
    def read(self) -> int:
        """Tokens of a text on average, for the plan."""
        return max(1, round(self.usual))

    @cached_property
    def learned(self) -> Any:
        """Samples to learn from."""
        return self.made_from("train", self.config.training.seed)

    @cached_property
    def evaluation_samples(self) -> dict[str, Any]:
        """Samples of the validation and test text: the same hidden tokens in every evaluation."""
        return {part: self._make_evaluation_samples(part) for part in self.texts.parts if part != "train"}

    def _make_evaluation_samples(self, part: str) -> Any:
        try:
            return self.made_from(part, EVALUATION_SEED)
        except DataError as error:
            where = "the validation text" if part == "validation" else "the test text"
            raise DataError(f"{where}: {error}") from None

    @property
    def per_epoch(self) -> int:
        return int(self.learned.per_epoch)

    def samples(self, numbers: np.ndarray) -> Any:
        return self.batch(self.learned, numbers)

    @property
    def evaluation_tokens(self) -> int:
        return sum(len(part.ids) for name, part in self.texts.parts.items() if name != "train")

    @property
    def has_test(self) -> bool:
        return "test" in self.texts.parts

    def measure(self, model: nn.Module, part: str, ranks: Ranks) -> dict[str, float]:
        """Loss, and how often each task is right."""
        samples = self.evaluation_samples[part]
        rows = max(1, 4096 // self.length)
        sums = LossSums(self.config.objective.tasks)  # a process without rows names them too
        device = torch.device(self.config.training.device)
        model.eval()
        with torch.no_grad():
            for start in range(ranks.rank * rows, samples.per_epoch, rows * ranks.world):
                numbers = np.arange(start, min(start + rows, samples.per_epoch))
                summed, count, parts = self.loss(model, self.batch(samples, numbers).to(device))
                sums.add(float(summed), count, parts)
        if ranks.world > 1:
            sums.share(ranks, device)
        told = {f"validation_{name}": value for name, value in sums.means().items()}
        return {"validation_loss": sums.total / max(1, sums.count), **told}

    def validation_inputs(self) -> ValidationInputs:
        samples = self.evaluation_samples["validation"]
        return ValidationInputs(self.loss, [self.batch(samples, np.array([n])) for n in some_of(samples.per_epoch)])

    def warnings(self, plan: dict[str, Any]) -> list[str]:
        told = []
        if plan["tokens"] < 10_000:
            told.append(f"{plan['tokens']:,} tokens are very little to learn a language from")
        return told

    def describe(self) -> dict[str, Any]:
        parts, training = self.texts.parts, self.config.training
        return {
            "characters": self.config.data.characters,
            "tokens": len(parts["train"].ids),
            "sentences": len(parts["train"]),
            "documents": parts["train"].document_count,
            "validation_tokens": len(parts["validation"].ids),
            **({"test_tokens": len(parts["test"].ids)} if "test" in parts else {}),
            "tasks": list(self.config.objective.tasks),
            **self.common_facts(self.read, training.steps * training.batch / self.per_epoch),
        }
