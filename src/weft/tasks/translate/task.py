"""Training a model that writes one text from another: translation, and any other pairs of texts."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from weft.checkpoints import RunDirectory
from weft.cost import cost_of
from weft.data.sides import is_table_of_pairs
from weft.errors import ConfigError
from weft.generation import Weights
from weft.generation.text_to_text import limit_of
from weft.models import Budget, ModelConfig, Seq2SeqLM, Sizing, preset, sizing_of
from weft.objectives.text_to_text import PairBatch, TextToText, TextToTextConfig
from weft.tasks import planning
from weft.tasks.examples import inside
from weft.tasks.experiment import NO_ORIGIN, Experiment, Origin
from weft.tasks.preparation import learned_tokenizer
from weft.tasks.recording import Report
from weft.tasks.request import Request
from weft.tasks.results import BY_LENGTH
from weft.tasks.run import Run
from weft.tasks.settings import RunConfig
from weft.tasks.sources import DEMO
from weft.tasks.start import FINE_TUNING_RATES, Start
from weft.tasks.task import Task
from weft.tasks.translate.encoded_pairs import EncodedPairs, TokenizerPair, varied_batches
from weft.tasks.translate.examples import collect_translations
from weft.tasks.translate.pair_data import PairConfig, PairData, check_same, read_pair_data
from weft.tasks.translate.quality import HINT, by_length, has_bleu, quality
from weft.tasks.translate.translator import DEFAULT_SEARCH, GREEDY, TranslationSearch, plain_loss, translated
from weft.tasks.translate.translator_run import Translator
from weft.tasks.translate.words import TranslateWords
from weft.tasks.validation_inputs import ValidationInputs, some_of
from weft.tasks.vocabulary import pair_tokenizer_fields
from weft.text import Tokenizer, TokenizerConfig
from weft.training import Ranks
from weft.training.freezing import freeze

DEFAULT_MINUTES, DEMO_MINUTES = 10.0, 2.5  # when the user says nothing
DEFAULT_MAX_TOKENS = 256  # tokens of a text that are read, unless the user says otherwise
EVALUATED_PAIRS = 500  # pairs that are translated at each evaluation
EVALUATIONS_PER_RUN = 15  # in a run
COUNTED_PAIRS = 2000  # pairs from which the number of tokens is estimated
MIN_BATCH_TOKENS, MAX_BATCH_TOKENS = 512, 4096  # tokens
USUAL_LENGTH = 16  # tokens of a text
MIN_PLANNED_EPOCHS = 9  # readings of the pairs for which there should be time
TIMED_SOURCES = 32  # sources that are translated to know how long the end will take


class TranslateConfig(RunConfig):
    """All settings of a run that learns to write one text from another."""

    data: PairConfig
    objective: TextToTextConfig = TextToTextConfig()


class Translate(Task):
    """Learn from pairs of texts to write the second from the first."""

    name = "translate"
    capabilities = (Seq2SeqLM,)
    settings = TranslateConfig
    data = PairConfig
    objective = TextToTextConfig
    words = TranslateWords()
    turn = 3
    evaluated_by_text = True
    rows = (("source", "target"),)
    takes_texts = False
    opens = Translator

    def recognises(self, paths: Sequence[str], columns: Collection[str]) -> bool:
        """Tables with two columns of free text and no label; and any for which `columns` name the two sides."""
        if {"source", "target"} & set(columns):
            return True
        return not {"text", "pair", "label"} & set(columns) and is_table_of_pairs(paths[0])

    def check_start(self, run: Run) -> None:
        run.check_translates()

    def check_tokenizer(self, config: TokenizerConfig) -> None:
        if not getattr(config, "gives_text_back", False):
            raise ConfigError(
                f"the tokenizer {config.kind!r} is not for writing: it does not give text back",
                expected="bpe, unigram, characters, words or bytes",
            )

    def plan(self, origin: Origin) -> Parallel:
        request, start, ranks, report = origin.asked, origin.start, origin.ranks, origin.report
        data = read_pair_data(request.data_config(self.data))
        for text in data.warnings if ranks.is_first else ():
            report({"event": "warning", "text": text})
        if not has_bleu() and ranks.is_first:
            report({"event": "warning", "text": f"{HINT}; the best weights are chosen by the loss"})
        tokenizer_config = None
        if start is None:
            fields = pair_tokenizer_fields(request.tokenizer, data.config.characters)
            tokenizer_config = request.apply("tokenizer", TokenizerConfig.from_config(fields))
            tokenizers = _learned(tokenizer_config, data, report)
        else:
            tokenizers = TokenizerPair(start.source_tokenizer or start.tokenizer, start.tokenizer)
        report({"event": "phase", "name": "planning"})
        return _plan(origin, data, tokenizers, tokenizer_config)

    def reopen(self, config: TranslateConfig, origin: Origin) -> Parallel:
        assert origin.run is not None
        data = read_pair_data(config.data)
        check_same(config.data, data.config)
        target, source = Tokenizer.load(origin.run.tokenizer_file), origin.run.source_tokenizer_file
        both = TokenizerPair(Tokenizer.load(source) if source.exists() else target, target)
        return Parallel(config, data, both, origin)

    def read_data(self, config: PairConfig) -> PairData:
        return read_pair_data(config)

    def evaluate(self, run: Run, *data: str, weights: Weights) -> dict[str, Any]:
        return TranslationSearch(run).evaluate(*data)

    def examples(self, run: Run, data: Callable[[], Any]) -> dict[str, Any]:
        if data() is None:
            return {}
        found = collect_translations(run, data())
        return {"kind": "translations", "examples": found, "inside": inside(found, "source")}

    def sample(self, run: Run) -> dict[str, str]:
        assert isinstance(run.config.data, PairConfig)
        source = str(read_pair_data(run.config.data).validation.sources[0])
        return {"prompt": source, "text": TranslationSearch(run).translate([source])[0].text}


TASK = Translate()


@dataclass
class Parallel(Experiment):
    """Pairs of texts as tokens, read in buckets of similar length."""

    task_name = TASK.name
    config: TranslateConfig
    data: PairData
    tokenizers: TokenizerPair
    origin: Origin = NO_ORIGIN

    @property
    def tokenizer(self) -> Tokenizer:  # type: ignore[override]
        return self.tokenizers.target

    @property
    def source_tokenizer(self) -> Tokenizer | None:  # type: ignore[override]
        return None if self.tokenizers.are_one else self.tokenizers.source

    @property
    def length(self) -> int:
        """Tokens of a text that are read or written."""
        return min(self.config.model.max_length, self.config.data.length or DEFAULT_MAX_TOKENS)  # type: ignore[attr-defined]

    @property
    def start(self) -> int:
        """The token that a target begins with."""
        return int(self.config.model.start)  # type: ignore[attr-defined]

    @cached_property
    def parts(self) -> dict[str, EncodedPairs]:
        """Train, validation and test as tokens."""
        given = {"train": self.data.train, "validation": self.data.validation, "test": self.data.test}
        return {
            name: EncodedPairs.of(part, self.tokenizers, self.length)
            for name, part in given.items()
            if part is not None
        }

    @cached_property
    def _batches(self) -> tuple[Any, Callable[[np.ndarray], PairBatch]]:
        objective = self.config.objective
        return varied_batches(
            self.parts["train"],
            self.tokenizers,
            tokens=objective.batch_tokens,
            share=objective.respelling,
            longest=self.length,
            start=self.start,
            seed=self.config.training.seed,
        )

    def samples(self, numbers: np.ndarray) -> PairBatch:
        return self._batches[1](numbers)

    @property
    def per_epoch(self) -> int:
        """Bunches in one reading of the pairs."""
        return int(self._batches[0].per_epoch)

    def loss(self, model: nn.Module, batch: PairBatch) -> tuple[Any, ...]:
        return TextToText(self.config.objective.smoothing)(cast("Any", model), batch)

    @property
    def evaluation_tokens(self) -> int:
        return sum(part.tokens for name, part in self.parts.items() if name != "train")

    @cached_property
    def _seconds_each(self) -> tuple[float, float]:
        """To translate a source, greedily and thoroughly; measured with fresh weights on a few sources, as many tokens
        each as their targets have."""
        model = self.config.model.build().to(self.config.training.device)
        part = self.parts["validation"]
        some = np.linspace(0, len(part) - 1, min(TIMED_SOURCES, len(part))).astype(int)
        sources, lengths = [part.sources[n] for n in some], [len(part.targets[n]) for n in some]
        seconds = []
        for settings in (GREEDY, DEFAULT_SEARCH):
            began = time.perf_counter()
            translated(model, self.tokenizer, sources, settings, start=self.start, limits=lengths)
            seconds.append((time.perf_counter() - began) / len(some))
        return seconds[0], seconds[1]

    @property
    def seconds_of_evaluation(self) -> float:
        """The seconds that translating some of the validation pairs takes."""
        return self._seconds_each[0] * min(EVALUATED_PAIRS, len(self.parts["validation"]))

    def seconds_at_end(self) -> float:
        if "test" not in self.parts:
            return 2 * self.seconds_of_evaluation  # the last one, and once more by length
        return self.seconds_of_evaluation + self._seconds_each[1] * len(self.parts["test"])

    def validation_inputs(self) -> ValidationInputs:
        pairs = self.parts["validation"]
        return ValidationInputs(self.loss, [pairs.batch([n], self.start) for n in some_of(len(pairs))])

    @property
    def has_test(self) -> bool:
        return self.data.test is not None

    @property
    def selection_metric(self) -> str:
        return "validation_bleu" if has_bleu() else "validation_loss"

    def measure(self, model: nn.Module, part: str, ranks: Ranks) -> dict[str, Any]:
        pairs, texts = self.parts[part], {"validation": self.data.validation, "test": self.data.test}[part]
        assert texts is not None
        count = len(pairs) if part == "test" else min(EVALUATED_PAIRS, len(pairs))
        written = self._written_for(model, part, count)
        found = quality(written, texts.targets[:count])
        device = torch.device(self.config.training.device)
        loss = {"validation_loss": plain_loss(model, pairs, self.start, device)}
        if part == "test":
            return {**loss, **found, "by_length": by_length(texts.sources, written, texts.targets)}
        return {**loss, **{f"validation_{name}": value for name, value in found.items()}}

    def _written_for(self, model: nn.Module, part: str, count: int) -> list[str]:
        sources = self.parts[part].sources[:count]
        limits = [limit_of(len(source), self.length) for source in sources]
        settings = DEFAULT_SEARCH if part == "test" else GREEDY
        return translated(model, self.tokenizer, sources, settings, start=self.start, limits=limits)

    @property
    def concludes(self) -> bool:
        """Translation quality by length: of the test pairs if there are any, else of the validation pairs."""
        return not self.has_test

    def conclude(self, model: nn.Module, run: RunDirectory) -> dict[str, Any]:
        texts = self.data.validation.part(range(min(EVALUATED_PAIRS, len(self.data.validation))))
        return {BY_LENGTH: by_length(texts.sources, self._written_for(model, "validation", len(texts)), texts.targets)}

    def warnings(self, plan: dict[str, Any]) -> list[str]:
        told = []
        if plan["pairs"] < 1000:
            told.append(f"{plan['pairs']} pairs are very little to learn from")
        if plan["cut"] > 0.01:
            text = f"{plan['cut']:.0%} of the texts have more than {plan['length']} tokens and are cut"
            told.append(f"{text}; --set data.length={2 * plan['length']} reads more")
        return told

    def describe(self) -> dict[str, Any]:
        training, pairs = self.config.training, self.parts["train"]
        read = max(1, round(float(pairs.lengths.mean())))
        each = self.config.objective.batch_tokens * training.batch
        epochs = training.steps * training.batch / self.per_epoch
        return {
            **self.common_facts(read, epochs, max(1, each // (2 * read))),
            "columns": self.data.why,
            "pairs": len(pairs),
            "tokens": pairs.tokens,
            "batch_tokens": each,
            **{f"{name}_pairs": len(part) for name, part in self.parts.items() if name != "train"},
            "cut": pairs.cut,
            "vocabularies": "joint" if self.tokenizers.are_one else "separate",
        }


def _learned(config: TokenizerConfig, data: PairData, report: Report) -> TokenizerPair:
    """One vocabulary for both sides, or one for each."""
    sides = [data.train.sources, data.train.targets]
    if data.config.vocabularies == "joint":
        sides = [[*sides[0], *sides[1]]]
    made = [learned_tokenizer(config, texts, sum(map(len, texts)), report) for texts in sides]
    return TokenizerPair(made[0], made[-1])


def _plan(
    origin: Origin, data: PairData, tokenizers: TokenizerPair, tokenizer_config: TokenizerConfig | None
) -> Parallel:
    """The model, what the user set on top, then the number of steps by measuring."""
    request, start, ranks = origin.asked, origin.start, origin.ranks
    usual = DEMO_MINUTES if list(data.config.train) == [DEMO] else DEFAULT_MINUTES
    minutes = request.minutes if request.steps or request.epochs or request.minutes else usual
    flops = ranks.agree(planning.machine_speed(), torch.device(request.device)) * 60 * (minutes or usual)
    model = request.apply("model", _model(request, data, tokenizers, start, flops))
    if start is not None:
        start.build(model)  # refuses settings that its weights do not fit
    training = planning.first_training(request, 1, ranks, minutes, _learning(model, start))
    freeze(model.skeleton(), training.freeze)  # refuses more layers than there are
    config = TranslateConfig(
        model=model,
        tokenizer=tokenizer_config,
        data=data.config.override({"length": min(model.max_length, data.config.length or DEFAULT_MAX_TOKENS)}),  # type: ignore[attr-defined]
        training=training,
        start=request.start,
        objective=request.apply("objective", _objective(data, tokenizers, start)),
    )
    parallel = Parallel(config, data, tokenizers, origin)
    pieces = planning.Pieces(parallel.per_epoch, parallel.seconds_per_step, parallel.seconds_at_end)
    training = planning.with_steps(training, request, pieces, ranks)
    if not training.evaluate_every:
        count = EVALUATIONS_PER_RUN
        if training.minutes is not None:  # a tenth of the time at most
            fitting = 60 * training.minutes / 10 / max(1e-9, parallel.seconds_of_evaluation)
            count = int(ranks.agree(max(3, min(EVALUATIONS_PER_RUN, fitting)), torch.device(training.device)))
        training = training.override({"evaluate_every": max(1, -(-training.steps // count))})
    return replace(parallel, config=config.override({"training": training}))


def _model(
    request: Request, data: PairData, tokenizers: TokenizerPair, start: Start | None, flops: float
) -> ModelConfig:
    if start is not None:
        return start.model
    family, fields = preset(request.model or TASK.family)
    target = tokenizers.target
    sizes: dict[str, Any] = {"vocab_size": target.vocab_size, "start": target.end}
    if not tokenizers.are_one:
        sizes["source_vocab_size"] = tokenizers.source.vocab_size
    model = ModelConfig.from_config({"kind": family, **fields, **sizes})
    if fields:
        return model
    budget = pair_budget(flops, _some_tokens(data, tokenizers) // 2)
    return model.override(sizing_of(family, Seq2SeqLM).choose(budget, model).model)


def pair_budget(flops: float, tokens: int) -> Budget:
    """Room for a model with which pairs of so many tokens on each side can be read `MIN_PLANNED_EPOCHS` times."""

    def holds(model: ModelConfig, _: Sizing) -> bool:
        each = cost_of(model, batch=1, length=USUAL_LENGTH).flops / USUAL_LENGTH
        return MIN_PLANNED_EPOCHS * each * tokens <= flops

    return Budget(flops, holds)


def _some_tokens(data: PairData, tokenizers: TokenizerPair) -> int:
    """The number of tokens, estimated from the first pairs."""
    some = data.train.part(range(min(COUNTED_PAIRS, len(data.train))))
    return EncodedPairs.of(some, tokenizers, DEFAULT_MAX_TOKENS).tokens * len(data.train) // len(some)


def _objective(data: PairData, tokenizers: TokenizerPair, start: Start | None) -> TextToTextConfig:
    """Large batches for much data, and at least a hundred steps in an epoch otherwise."""
    tokens = max(MIN_BATCH_TOKENS, min(MAX_BATCH_TOKENS, _some_tokens(data, tokenizers) // 100 // 256 * 256))
    return TextToTextConfig(batch_tokens=tokens, **({} if start is None else {"respelling": 0.0}))


def _learning(model: ModelConfig, start: Start | None) -> dict[str, Any]:
    """The learning settings of the family for pairs; a finished model is fine-tuned."""
    return FINE_TUNING_RATES if start is not None else dict(sizing_of(model.kind, Seq2SeqLM).training)
