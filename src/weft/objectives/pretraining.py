"""What an encoder learns from raw text: hidden tokens and questions about pairs, any set of them at once.

The losses are added as sums, so that gradients over batches of unequal size add up exactly:

    summed = Σ over hidden tokens + pair_weight · Σ over pairs        count = hidden tokens

BERT adds two means, one over hidden tokens and one over pairs. That is the same with pair_weight = hidden tokens per
pair, about masked_share · length, which is the default. Without hidden tokens the weight is 1 and pairs are counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft.blocks import PackedSequences
from weft.config import Amount, Between, Config
from weft.data.masking import Masking
from weft.data.pretraining import ENTAILMENT, MASKED, TASKS, PretrainingRow, check_tasks
from weft.errors import ConfigError
from weft.models import FillsSpans, PackedTexts, named
from weft.objectives.spans import SPANS, SpanConfig

Part = tuple[Tensor, Tensor, int]
"""Of one task: the summed loss, how many answers were right, and how many there were."""


class ObjectiveConfig(Config):
    """What is learned from text.

    tasks           any of masked, next-sentence, sentence-order, inversion, entailment; or spans alone, as T5 learns
    masked_share    of the tokens that are hidden; `whole_words`: with all tokens of their word
    pair_weight     what a pair counts beside a hidden token; None: masked_share · length, close to BERT's two means
    spans           how much is hidden from a model that writes it
    """

    tasks: tuple[str, ...] = (MASKED,)
    masked_share: Annotated[float, Between(0, 1, open=True)] = 0.15
    whole_words: bool = False
    pair_weight: Amount | None = None
    spans: SpanConfig = SpanConfig()

    @classmethod
    def usual(cls, *, spans: bool) -> ObjectiveConfig:
        """What is learned when nobody says otherwise, by a model that fills spans or one that fills masks."""
        return cls(tasks=(SPANS,)) if spans else cls()

    def check(self) -> None:
        check_tasks(self.tasks, (*TASKS, SPANS))
        if SPANS in self.tasks and len(self.tasks) > 1:
            raise ConfigError(
                f"tasks = {', '.join(self.tasks)}",
                expected=f"spans alone, which a {named(FillsSpans)} learns, or the others without it",
            )
        if self.pair_weight is not None and not self.questions:
            raise ConfigError(f"pair_weight = {self.pair_weight:g} without pairs", expected="a task with pairs")
        if self.pair_weight == 0 and MASKED not in self.tasks:
            raise ConfigError("pair_weight = 0 leaves nothing to learn", expected="a weight above 0")

    def check_family(self, family: str, *, spans: bool) -> None:
        """Refuse what a family that fills `spans`, or masks, cannot learn, and settings that say nothing to it."""
        writes = spans
        if writes != (SPANS in self.tasks):
            expected = f"spans: a {family} writes what is missing" if writes else f"any of {', '.join(TASKS)}"
            raise ConfigError(f"objective.tasks = {', '.join(self.tasks)} for a {family}", expected=expected)
        nothing = ("masked_share", "whole_words", "pair_weight") if writes else ("spans",)
        usual = ObjectiveConfig.usual(spans=spans)
        for name in nothing:
            if getattr(self, name) != getattr(usual, name):
                raise ConfigError(
                    f"objective.{name} for a {family}, which learns {', '.join(self.tasks)}",
                    expected="objective.spans.share, .span or .anywhere"
                    if writes
                    else f"--model {named(FillsSpans)} with it",
                )

    @property
    def questions(self) -> tuple[str, ...]:
        """The tasks about pairs, in their usual order."""
        return tuple(task for task in TASKS if task in self.tasks and task != MASKED)

    @property
    def masking(self) -> Masking:
        return Masking(self.masked_share, self.whole_words)

    def weight(self, length: float) -> float:
        """What a pair counts, in texts of so many tokens on average."""
        if self.pair_weight is not None:
            return self.pair_weight
        return self.masked_share * length if MASKED in self.tasks else 1.0

    def head(self, classes: int = 2) -> dict[str, Any]:
        """What a model needs on top for these tasks; `classes` of labelled pairs."""
        answers = tuple(classes if task == ENTAILMENT else 2 for task in self.questions)
        if not self.questions:
            return {"kind": "masked"}
        kind = "pretraining" if MASKED in self.tasks else "pairs"
        return {"kind": kind, "questions": self.questions, "answers": answers}


@dataclass(frozen=True, eq=False)
class PretrainingBatch:
    """Texts in a row, and what is asked about them.

    places      where in the row tokens are hidden, and `targets`, what they were; None: no such task
    questions   for each kind of pair: which texts of the row, and the right answers
    """

    row: PackedTexts
    places: Tensor | None
    targets: Tensor | None
    questions: Mapping[str, tuple[Tensor, Tensor]]
    pair_weight: float = 1.0

    @classmethod
    def of(cls, row: PretrainingRow, config: ObjectiveConfig, length: float) -> PretrainingBatch:
        """What the data side made, as tensors; `length` is how many tokens texts have on average."""
        tokens, segments = (torch.from_numpy(part)[None] for part in (row.tokens, row.segments))
        text = PackedTexts(tokens, segments if config.questions else None, PackedSequences(tuple(row.lengths.tolist())))
        hidden = (row.places, row.targets) if MASKED in config.tasks else (None, None)
        places, targets = (None if part is None else torch.from_numpy(part) for part in hidden)
        none = (np.empty(0, dtype=np.int64),) * 2  # every batch names all questions: processes add up their sums
        asked = {name: row.questions.get(name, none) for name in config.questions}
        questions = {name: (torch.from_numpy(texts), torch.from_numpy(right)) for name, (texts, right) in asked.items()}
        return cls(text, places, targets, questions, config.weight(length))

    def __repr__(self) -> str:
        hidden = "" if self.places is None else f", {len(self.places)} hidden"
        return f"PretrainingBatch({self.row.packed}{hidden})"

    def to(self, device: torch.device | str) -> PretrainingBatch:
        """The same on another device."""
        places, targets = (None if part is None else part.to(device) for part in (self.places, self.targets))
        questions = {name: (texts.to(device), labels.to(device)) for name, (texts, labels) in self.questions.items()}
        return PretrainingBatch(self.row.to(device), places, targets, questions, self.pair_weight)


def pretraining_loss(model: nn.Module, batch: PretrainingBatch) -> tuple[Tensor, int, dict[str, Part]]:
    """The summed loss of a batch, by how many terms it is to be divided, and the part of each task.

    Logits over the vocabulary are computed for hidden tokens alone.
    """
    states = batch.row.states(model)
    hidden = states[0]
    total = hidden.new_zeros((), dtype=torch.promote_types(hidden.dtype, torch.float32))
    parts: dict[str, Part] = {}
    pairs = 0
    if batch.places is not None and batch.targets is not None:
        logits = model.masked_logits(hidden[batch.places])  # type: ignore[operator]
        total = total + _judged(MASKED, logits, batch.targets, parts)
    for name, (texts, labels) in batch.questions.items():
        logits = model.pair_logits(states, name, packed=batch.row.packed)[texts]  # type: ignore[operator]
        total = total + batch.pair_weight * _judged(name, logits, labels, parts)
        pairs += len(labels)
    return total, pairs if batch.places is None else len(batch.places), parts


def _judged(name: str, logits: Tensor, labels: Tensor, parts: dict[str, Part]) -> Tensor:
    """The summed loss of one task, which is noted with its right answers."""
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    summed = F.cross_entropy(logits, labels, reduction="sum")
    parts[name] = (summed.detach(), (logits.detach().argmax(-1) == labels).sum(), len(labels))
    return summed
