"""Training a model that gives every word of a text a tag: named entities, parts of speech."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from weft.errors import ConfigError
from weft.generation import Weights
from weft.models.capabilities import Capability, TagsTokens
from weft.objectives.token_classification import TaggedRow, TokenClassification, TokenClassifyConfig
from weft.tasks.encoder_task import EncoderExperiment, EncoderTask
from weft.tasks.experiment import Origin
from weft.tasks.run import Run
from weft.tasks.settings import RunConfig
from weft.tasks.tag.alignment import EncodedWords, Ids, encode_labels, encode_words
from weft.tasks.tag.baseline import MostFrequentTag
from weft.tasks.tag.data import TagData, check_same, read_tag_data
from weft.tasks.tag.evaluation import measured
from weft.tasks.tag.examples import collect_tags
from weft.tasks.tag.files import TagConfig
from weft.tasks.tag.metrics import tag_scores
from weft.tasks.tag.run_tagger import evaluate
from weft.tasks.tag.sentences import TaggedSentences, are_tagged
from weft.tasks.tag.tagger_run import Tagger
from weft.tasks.tag.words import BASELINE, TagWords
from weft.tasks.validation_inputs import ValidationInputs, some_of
from weft.tasks.words import Words
from weft.text import Tokenizer
from weft.training import Ranks


class TagRunConfig(RunConfig):
    """All settings of a run that learns to tag words."""

    data: TagConfig
    objective: TokenClassifyConfig = TokenClassifyConfig()


class Tag(EncoderTask):
    """Learn from tagged sentences which tag each word has."""

    name = "tag"
    capabilities: ClassVar[tuple[Capability, ...]] = (TagsTokens,)
    longest = 128
    settings = TagRunConfig
    data = TagConfig
    objective = TokenClassifyConfig
    words: ClassVar[Words] = TagWords()
    turn = 1
    evaluated_by_text = True
    rows = (("tokens", "tags"),)
    takes_texts = False
    opens = Tagger

    def recognises(self, paths: Sequence[str], columns: Collection[str]) -> bool:
        return are_tagged(paths, columns)

    def check_start(self, run: Run) -> None:
        run.check_reads()
        if run.model_config.kind not in self.families:
            raise ConfigError(
                f"--from {run.directory.path} is a {run.model_config.kind}: not for {self.name}",
                expected=f"one of {', '.join(self.families)}",
            )

    def experiment(self, config: TagRunConfig, data: TagData, tokenizer: Tokenizer, origin: Origin) -> Tagging:
        return Tagging(config, data, tokenizer, origin)

    def read_data(self, config: TagConfig) -> TagData:
        return read_tag_data(config)

    def check_same(self, recorded: TagConfig, found: TagConfig) -> None:
        check_same(recorded, found)

    def texts(self, data: TagData) -> list[str]:
        return [" ".join(words) for words in data.train.words]

    def head(self, data: TagData) -> dict[str, Any]:
        return {"kind": "tokens", "labels": data.labels}

    def tokenizer_fields(self, kind: str | None, characters: int) -> dict[str, Any]:
        """Word pieces with capitals, which names have, and few of them: then the words that are learned from are made
        of the same pieces as those that are not among them, and are not learned by heart."""
        fields = super().tokenizer_fields(kind, characters)
        if fields["kind"] != "wordpiece":
            return fields
        return {"kind": "wordpiece", "lowercase": False, "vocab_size": max(1000, fields["vocab_size"] // 4)}

    def evaluate(self, run: Run, *data: str, weights: Weights) -> dict[str, Any]:
        return evaluate(run, *data)

    def examples(self, run: Run, data: Callable[[], Any]) -> dict[str, Any]:
        return {} if data() is None else {"kind": "answers", **collect_tags(run, data())}


TASK = Tag()


@dataclass
class Tagging(EncoderExperiment):
    """Tagged sentences as tokens."""

    task_name = TASK.name
    config: TagRunConfig
    data: TagData

    @property
    def lengths(self) -> NDArray[np.integer]:
        return self.encoded["train"].lengths

    @cached_property
    def parts(self) -> dict[str, TaggedSentences]:
        """Train, validation and test, as far as they are there."""
        given = {"train": self.data.train, "validation": self.data.validation, "test": self.data.test}
        return {name: part for name, part in given.items() if part is not None}

    @cached_property
    def encoded(self) -> dict[str, EncodedWords]:
        """The same as tokens."""
        return {name: encode_words(self.tokenizer, part.words, self.length) for name, part in self.parts.items()}

    @cached_property
    def targets(self) -> list[Ids]:
        return encode_labels(self.parts["train"].tags, self.data.labels)

    def samples(self, numbers: np.ndarray) -> TaggedRow:
        return self.encoded["train"].tagged_row(self.order[numbers], self.targets)

    def validation_inputs(self) -> ValidationInputs:
        words = self.encoded["validation"]
        labels = encode_labels(self.parts["validation"].tags, self.data.labels)
        return ValidationInputs(self.loss, [words.tagged_row([n], labels) for n in some_of(len(words.windows))])

    def loss(self, model: nn.Module, batch: TaggedRow) -> tuple[Any, ...]:
        return self.classification(model, batch)

    @cached_property
    def classification(self) -> TokenClassification:
        return TokenClassification(smoothing=self.config.objective.smoothing, **self.dropping_words())

    @property
    def evaluation_tokens(self) -> int:
        return sum(int(words.lengths.sum()) for name, words in self.encoded.items() if name != "train")

    @property
    def selection_metric(self) -> str:
        return "accuracy" if self.data.plain else "f1"

    def measure(self, model: nn.Module, part: str, ranks: Ranks) -> dict[str, Any]:
        found = measured(
            model,
            self.encoded[part],
            self.parts[part].tags,
            self.data.labels,
            plain=self.data.plain,
            whole=part == "test",
            device=torch.device(self.config.training.device),
        )
        return found | {BASELINE + self.selection_metric: self.simplest[part]}

    @cached_property
    def simplest(self) -> dict[str, float]:
        """What the simplest answer reaches on each evaluated part."""
        return simplest_scores(self.data, self.selection_metric)

    def warnings(self, plan: dict[str, Any]) -> list[str]:
        cut = sum(words.cut for words in self.encoded.values())
        return [f"{cut} words have more than {self.length - 2} tokens and are cut"] if cut else []

    def describe(self) -> dict[str, Any]:
        data = self.data
        return {
            "columns": _where(data.train),
            "plain": data.plain,
            "kinds": list(data.train.kinds()),
            "sentences": len(data.train),
            "words": data.train.word_count,
            **{f"{name}_sentences": len(part) for name, part in self.parts.items() if name != "train"},
            **{f"{name}_{BASELINE}{self.selection_metric}": value for name, value in self.simplest.items()},
            **self.text_facts(),
        }


def simplest_scores(data: TagData, metric: str) -> dict[str, float]:
    """Each word with its most frequent tag, on each evaluated part."""
    tagger = MostFrequentTag(data.train.words, data.train.tags)
    parts = {"validation": data.validation, "test": data.test}
    return {
        name: tag_scores(part.tags, tagger.predict(part.words), plain=data.plain)[metric]
        for name, part in parts.items()
        if part is not None
    }


def _where(sentences: TaggedSentences) -> str:
    """Where words and tags were found, as a sentence begins."""
    if not all(sentences.columns):
        return f"words and tags of {sentences.name}"
    return f"words from {sentences.columns[0]}, tags from {sentences.columns[1]}"
