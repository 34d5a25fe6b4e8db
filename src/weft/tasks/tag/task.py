"""Training a model that gives every word of a text a tag: named entities, parts of speech."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from weft.data import ByLength
from weft.errors import ConfigError
from weft.generation import Weights
from weft.models import Budget, ModelConfig, SizePreset, Sizing, preset, sizing_of
from weft.models.capabilities import Capability, TagsTokens
from weft.objectives.token_classification import TaggedRow, TokenClassification, TokenClassifyConfig
from weft.tasks import planning
from weft.tasks.experiment import NO_ORIGIN, Experiment, Origin
from weft.tasks.held_out import HeldOut, some_of
from weft.tasks.preparation import ENCODER_TOKENS, learned_tokenizer
from weft.tasks.request import Request
from weft.tasks.run import Run
from weft.tasks.settings import RunConfig
from weft.tasks.start import Start
from weft.tasks.tag.alignment import EncodedWords, Ids, encode_labels, encode_words
from weft.tasks.tag.baseline import MostFrequentTag
from weft.tasks.tag.data import TagData, check_same, read_tag_data
from weft.tasks.tag.evaluation import measured
from weft.tasks.tag.examples import tags_shown
from weft.tasks.tag.files import TagConfig
from weft.tasks.tag.metrics import tag_scores
from weft.tasks.tag.run_tagger import evaluate
from weft.tasks.tag.sentences import TaggedSentences, are_tagged
from weft.tasks.tag.tagger_run import Tagger
from weft.tasks.tag.words import SIMPLEST, TagWords
from weft.tasks.task import Task
from weft.tasks.vocabulary import encoder_tokenizer_fields
from weft.tasks.words import Words
from weft.text import Tokenizer, TokenizerConfig
from weft.training import AdamWConfig, Ranks
from weft.training.freezing import freeze

STEPS = 1500  # that few sentences are worth, if they are not read more than MOST times for it
FEWEST, MOST = 4.0, 30.0  # readings of the sentences when the user says nothing
MINUTES = 10.0  # and not longer than this
LONGEST = 128  # tokens that are read at a time, unless the user says otherwise
BATCH = 32


class TagRunConfig(RunConfig):
    """All settings of a run that learns to tag words."""

    data: TagConfig
    objective: TokenClassifyConfig = TokenClassifyConfig()


class Tag(Task):
    """Learn from tagged sentences which tag each word has."""

    name = "tag"
    capabilities: ClassVar[tuple[Capability, ...]] = (TagsTokens,)
    tokenizer = "wordpiece"
    settings = TagRunConfig
    data = TagConfig
    objective = TokenClassifyConfig
    words: ClassVar[Words] = TagWords()
    turn = 1
    judged_by_text = True
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

    def plan(self, origin: Origin) -> Tagging:
        request, start, report = origin.asked, origin.start, origin.report
        data = read_tag_data(request.data_config(self.data))
        for text in data.warnings if origin.ranks.is_first else ():
            report({"event": "warning", "text": text})
        tokenizer_config = None
        if start is None:
            fields = _tokenizer_fields(request.tokenizer, data.config.characters)
            tokenizer_config = request.apply("tokenizer", TokenizerConfig.from_config(fields))
            pieces = [" ".join(words) for words in data.train.words]
            tokenizer = learned_tokenizer(tokenizer_config, pieces, sum(map(len, pieces)), report, ENCODER_TOKENS)
        else:
            tokenizer = start.tokenizer
        report({"event": "phase", "name": "planning"})
        return _plan(origin, data, tokenizer, tokenizer_config)

    def reopen(self, config: TagRunConfig, origin: Origin) -> Tagging:
        assert origin.run is not None
        data = read_tag_data(config.data)
        check_same(config.data, data.config)
        return Tagging(config, data, Tokenizer.load(origin.run.tokenizer_file), origin)

    def read_data(self, config: TagConfig) -> TagData:
        return read_tag_data(config)

    def evaluate(self, run: Run, *data: str, weights: Weights) -> dict[str, Any]:
        return evaluate(run, *data)

    def examples(self, run: Run, data: Callable[[], Any]) -> dict[str, Any]:
        return {} if data() is None else {"kind": "answers", **tags_shown(run, data())}


TASK = Tag()


@dataclass
class Tagging(Experiment):
    """Tagged sentences as tokens, read in batches of similar length."""

    task_name = TASK.name
    config: TagRunConfig
    sentences: TagData
    tokenizer: Tokenizer
    origin: Origin = NO_ORIGIN

    @property
    def length(self) -> int:
        return _length(self.config.model, self.config.data.length)

    @property
    def epochs(self) -> float:
        """Readings of the sentences that are worth it."""
        if self.config.start is not None and not getattr(self.config.model, "zero_outputs", False):
            return FEWEST  # a finished model is soon bent
        return min(MOST, max(FEWEST, STEPS * self.config.training.batch / self.per_epoch))

    @cached_property
    def parts(self) -> dict[str, TaggedSentences]:
        """Train, validation and test, as far as they are there."""
        given = {"train": self.sentences.train, "validation": self.sentences.validation, "test": self.sentences.test}
        return {name: part for name, part in given.items() if part is not None}

    @cached_property
    def encoded(self) -> dict[str, EncodedWords]:
        """The same as tokens."""
        return {name: encode_words(self.tokenizer, part.words, self.length) for name, part in self.parts.items()}

    @cached_property
    def targets(self) -> list[Ids]:
        return encode_labels(self.parts["train"].tags, self.sentences.labels)

    @cached_property
    def order(self) -> ByLength:
        training = self.config.training
        return ByLength(self.encoded["train"].lengths, training.batch, training.seed)

    def samples(self, numbers: np.ndarray) -> TaggedRow:
        return self.encoded["train"].tagged_row(self.order[numbers], self.targets)

    @property
    def per_epoch(self) -> int:
        return len(self.encoded["train"].windows)

    def held_out(self) -> HeldOut:
        words = self.encoded["validation"]
        labels = encode_labels(self.parts["validation"].tags, self.sentences.labels)
        return HeldOut(self.loss, [words.tagged_row([n], labels) for n in some_of(len(words.windows))])

    def loss(self, model: nn.Module, batch: TaggedRow) -> tuple[Any, ...]:
        return self.classification(model, batch)

    @cached_property
    def classification(self) -> TokenClassification:
        objective, special = self.config.objective, self.tokenizer.special
        hidden = special.mask if special.mask is not None else special.unknown
        return TokenClassification(
            smoothing=objective.smoothing,
            word_dropout=objective.word_dropout if hidden is not None else 0.0,
            hidden=hidden or 0,
            whole=[token for token in (special.classify, special.separate, special.pad) if token is not None],
        )

    @property
    def judged_tokens(self) -> int:
        return sum(int(words.lengths.sum()) for name, words in self.encoded.items() if name != "train")

    @property
    def most(self) -> int:
        return round(self.epochs * self.per_epoch / self.config.training.batch)

    @property
    def has_test(self) -> bool:
        return self.sentences.test is not None

    @property
    def selection_metric(self) -> str:
        return "accuracy" if self.sentences.plain else "f1"

    def measure(self, model: nn.Module, part: str, ranks: Ranks) -> dict[str, Any]:
        found = measured(
            model,
            self.encoded[part],
            self.parts[part].tags,
            self.sentences.labels,
            plain=self.sentences.plain,
            whole=part == "test",
            device=torch.device(self.config.training.device),
        )
        return found | {SIMPLEST + self.selection_metric: self.simplest[part]}

    @cached_property
    def simplest(self) -> dict[str, float]:
        """What the simplest answer reaches on each part that is judged by."""
        return simplest_scores(self.sentences, self.selection_metric)

    def warnings(self, plan: dict[str, Any]) -> list[str]:
        cut = sum(words.cut for words in self.encoded.values())
        return [f"{cut} words have more than {self.length - 2} tokens and are cut"] if cut else []

    def describe(self) -> dict[str, Any]:
        training, data = self.config.training, self.sentences
        words = self.encoded["train"]
        return {
            "columns": _where(data.train),
            "plain": data.plain,
            "kinds": list(data.train.kinds()),
            "sentences": len(data.train),
            "words": data.train.word_count,
            **{f"{name}_sentences": len(part) for name, part in self.parts.items() if name != "train"},
            **{f"{name}_{SIMPLEST}{self.selection_metric}": value for name, value in self.simplest.items()},
            **self.common_facts(
                max(1, round(float(words.lengths.mean()))), training.steps * training.batch / self.per_epoch
            ),
        }


def simplest_scores(data: TagData, metric: str) -> dict[str, float]:
    """Each word with its most frequent tag, on each part that is judged by."""
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


def _plan(origin: Origin, data: TagData, tokenizer: Tokenizer, tokenizer_config: TokenizerConfig | None) -> Tagging:
    """The model, what the user set on top, then the number of steps."""
    request, start, ranks = origin.asked, origin.start, origin.ranks
    model = request.apply("model", _model(request, tokenizer, start, data))
    if start is not None:
        start.build(model)  # refuses settings that its weights do not fit
    minutes = request.minutes if request.steps or request.epochs or request.minutes else MINUTES
    training = planning.first_training(request, BATCH, ranks, minutes, _learning(model, start))
    freeze(model.skeleton(), training.freeze)  # refuses more layers than there are
    config = TagRunConfig(
        model=model,
        tokenizer=tokenizer_config,
        data=data.config.override({"length": _length(model, data.config.length)}),
        training=training,
        start=request.start,
        objective=request.apply("objective", _objective(model, start)),
    )
    tagging = Tagging(config, data, tokenizer, origin)
    pieces = planning.Pieces(tagging.per_epoch, tagging.seconds_per_step, tagging.seconds_at_end, tagging.epochs)
    training = planning.with_steps(training, request, pieces, ranks)
    if not training.evaluate_every:
        each = max(1, tagging.per_epoch // training.batch)
        training = training.override({"evaluate_every": max(1, min(each, training.steps // 4))})
    return replace(tagging, config=config.override({"training": training}))


def _tokenizer_fields(kind: str | None, characters: int) -> dict[str, Any]:
    """Word pieces with capitals, which names have, and few of them: then the words that are learned from are made of
    the same pieces as those that are not among them, and are not learned by heart."""
    fields = encoder_tokenizer_fields(kind, characters)
    if fields["kind"] != "wordpiece":
        return fields
    return {"kind": "wordpiece", "lowercase": False, "vocab_size": max(1000, fields["vocab_size"] // 4)}


def _is_finished(start: Start | None) -> bool:
    """Whether training begins with a model that was trained long before; ours have only read a little."""
    return start is not None and not getattr(start.model, "zero_outputs", False)


def _learning(model: ModelConfig, start: Start | None) -> dict[str, Any]:
    """As the family learns a few sentences best; a finished model is only bent."""
    if not _is_finished(start):
        return dict(_sizing(model.kind).training)
    rate = 0.04 / getattr(model, "width", 768)  # 5e-5 for BERT's width, as its authors advise
    return {"optimizer": AdamWConfig(learning_rate=rate), "warmup": 0.1, "decay": 0.9}


def _objective(model: ModelConfig, start: Start | None) -> TokenClassifyConfig:
    """A finished model is not shown words that are hidden: it knows enough of them."""
    if _is_finished(start):
        return TokenClassifyConfig(word_dropout=0.0)
    return TokenClassifyConfig().override(_sizing(model.kind).objective)


def _model(request: Request, tokenizer: Tokenizer, start: Start | None, data: TagData) -> ModelConfig:
    """With a head for these labels."""
    head = {"head": {"kind": "tokens", "labels": data.labels}}
    if start is not None:
        fields = {} if _is_finished(start) else {"dropout": _size(start.model.kind).model["dropout"]}
        return start.model.override(fields | head)
    family, fields = preset(request.model or TASK.family)
    model = ModelConfig.from_config({"kind": family, **fields, "vocab_size": tokenizer.vocab_size})
    if fields:
        return model.override(head)
    longest = {} if model.context is None else {"max_length": data.config.length or LONGEST}
    return model.override({**_size(family).model, **longest, **head})


def _sizing(family: str) -> Sizing:
    return sizing_of(family, TagsTokens)


def _size(family: str) -> SizePreset:
    """Few sentences are learned by the smallest model, however much time there is."""
    return _sizing(family).choose(Budget(0.0))


def _length(model: ModelConfig, wanted: int | None) -> int:
    """Tokens that are read at a time: as many as are wanted and as it can."""
    length = wanted or LONGEST
    return min(length, model.context or length)
