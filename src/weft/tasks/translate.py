"""Training a model that writes one text from another: translation, and any other pairs of texts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import nn

from weft.checkpoints import RunDirectory
from weft.errors import ConfigError
from weft.generation.text_to_text import limit_of
from weft.models import ModelConfig, PairModelConfig, preset
from weft.models.seq2seq import RecurrentPairConfig
from weft.objectives.text_to_text import PairBatch, TextToText, TextToTextConfig
from weft.tasks import planning
from weft.tasks.encoded_pairs import EncodedPairs, Spellers, varied_batches
from weft.tasks.held_out import HeldOut, some_of
from weft.tasks.job import BY_LENGTH, Job, Report
from weft.tasks.pair_tables import PairConfig, PairData, check_same, read_pair_data
from weft.tasks.preparation import learned_tokenizer
from weft.tasks.request import Request
from weft.tasks.run import Run
from weft.tasks.settings import RunConfig
from weft.tasks.sizes import pair_sizes
from weft.tasks.sources import DEMO
from weft.tasks.start import GENTLE, Start
from weft.tasks.task import Prepared, Task
from weft.tasks.translating import GREEDY, THOROUGH, plain_loss, translated
from weft.tasks.translation_quality import HINT, by_length, has_bleu, quality
from weft.tasks.vocabulary import pair_tokenizer_fields
from weft.text import Tokenizer, TokenizerConfig
from weft.training import Ranks
from weft.training.freezing import freeze

MINUTES, DEMO_MINUTES = 10.0, 2.5  # when the user says nothing
LONGEST = 256  # tokens of a text that are read, unless the user says otherwise
JUDGED = 500  # pairs that are translated at each evaluation
EVALUATIONS = 15  # in a run
SOME = 2000  # pairs from which the number of tokens is told
SMALLEST_BATCH, LARGEST_BATCH = 512, 4096  # tokens
TIMED = 32  # sources that are translated to know how long the end will take


class TranslateConfig(RunConfig):
    """All settings of a run that learns to write one text from another."""

    data: PairConfig
    objective: TextToTextConfig = TextToTextConfig()


class Translate(Task):
    """Learn from pairs of texts to write the second from the first."""

    name = "translate"
    family = "transformer"
    families = ("transformer", "t5", "seq2seq", "bahdanau")
    settings = TranslateConfig
    data = PairConfig
    objective = TextToTextConfig

    def check_start(self, run: Run) -> None:
        run.check_translates()

    def check_tokenizer(self, config: TokenizerConfig) -> None:
        if not getattr(config, "gives_text_back", False):
            raise ConfigError(
                f"the tokenizer {config.kind!r} is not for writing: it does not give text back",
                expected="bpe, unigram, characters, words or bytes",
            )

    def prepare(self, request: Request, start: Start | None, ranks: Ranks, report: Report) -> Parallel:
        data = read_pair_data(request.data_config(self.data))
        for text in data.warnings if ranks.is_first else ():
            report({"event": "warning", "text": text})
        if not has_bleu() and ranks.is_first:
            report({"event": "warning", "text": f"{HINT}; the best weights are chosen by the loss"})
        tokenizer_config = None
        if start is None:
            fields = pair_tokenizer_fields(request.tokenizer, data.config.characters)
            tokenizer_config = request.apply("tokenizer", TokenizerConfig.pick(fields))
            spellers = _learned(tokenizer_config, data, report)
        else:
            spellers = Spellers(start.source_tokenizer or start.tokenizer, start.tokenizer)
        report({"event": "phase", "name": "planning"})
        return _plan(request, data, spellers, tokenizer_config, start, ranks)

    def reopen(self, config: TranslateConfig, run: RunDirectory, report: Report) -> Parallel:
        data = read_pair_data(config.data)
        check_same(config.data, data.config)
        target, source = Tokenizer.load(run.tokenizer_file), run.source_tokenizer_file
        return Parallel(config, data, Spellers(Tokenizer.load(source) if source.exists() else target, target))


TASK = Translate()


@dataclass
class Parallel(Prepared):
    """Pairs of texts as tokens, read in bunches of similar length."""

    config: TranslateConfig
    data: PairData
    spellers: Spellers

    @property
    def tokenizer(self) -> Tokenizer:  # type: ignore[override]
        return self.spellers.target

    @property
    def source_tokenizer(self) -> Tokenizer | None:  # type: ignore[override]
        return None if self.spellers.are_one else self.spellers.source

    @property
    def length(self) -> int:
        """Tokens of a text that are read or written."""
        return min(self.config.model.max_length, self.config.data.length or LONGEST)  # type: ignore[attr-defined]

    @property
    def start(self) -> int:
        """The token that a target begins with."""
        return int(self.config.model.start)  # type: ignore[attr-defined]

    @cached_property
    def parts(self) -> dict[str, EncodedPairs]:
        """Train, validation and test as tokens."""
        given = {"train": self.data.train, "validation": self.data.validation, "test": self.data.test}
        return {
            name: EncodedPairs.of(part, self.spellers, self.length) for name, part in given.items() if part is not None
        }

    @cached_property
    def _batches(self) -> tuple[Any, Callable[[np.ndarray], PairBatch]]:
        objective = self.config.objective
        return varied_batches(
            self.parts["train"],
            self.spellers,
            tokens=objective.batch_tokens,
            share=objective.respelling,
            longest=self.length,
            start=self.start,
            seed=self.config.training.seed,
        )

    def samples(self) -> Callable[[np.ndarray], PairBatch]:
        return self._batches[1]

    @property
    def per_epoch(self) -> int:
        """Bunches in one reading of the pairs."""
        return int(self._batches[0].per_epoch)

    @property
    def loss(self) -> Callable[..., Any]:
        return TextToText(self.config.objective.smoothing)

    @property
    def judged_tokens(self) -> int:
        return sum(part.tokens for name, part in self.parts.items() if name != "train")

    @cached_property
    def _seconds_each(self) -> tuple[float, float]:
        """To translate a source, greedily and thoroughly; measured with fresh weights on a few sources, as many tokens
        each as their targets have."""
        model = self.config.model.build().to(self.config.training.device)
        part = self.parts["validation"]
        some = np.linspace(0, len(part) - 1, min(TIMED, len(part))).astype(int)
        sources, lengths = [part.sources[n] for n in some], [len(part.targets[n]) for n in some]
        seconds = []
        for settings in (GREEDY, THOROUGH):
            began = time.perf_counter()
            translated(model, self.tokenizer, sources, settings, start=self.start, limits=lengths)
            seconds.append((time.perf_counter() - began) / len(some))
        return seconds[0], seconds[1]

    @property
    def seconds_of_evaluation(self) -> float:
        """What translating some of the held-out pairs takes."""
        return self._seconds_each[0] * min(JUDGED, len(self.parts["validation"]))

    def seconds_at_end(self) -> float:
        if "test" not in self.parts:
            return 2 * self.seconds_of_evaluation  # the last one, and once more by length
        return self.seconds_of_evaluation + self._seconds_each[1] * len(self.parts["test"])

    def held_out(self) -> HeldOut:
        pairs = self.parts["validation"]
        return HeldOut(self.loss, [pairs.batch([n], self.start) for n in some_of(len(pairs))])

    def job(self, sample: str | None = None) -> Job:
        device = torch.device(self.config.training.device)
        given = {"validation": self.data.validation, "test": self.data.test}

        def written_for(model: nn.Module, part: str, count: int) -> list[str]:
            sources = self.parts[part].sources[:count]
            limits = [limit_of(len(source), self.length) for source in sources]
            settings = THOROUGH if part == "test" else GREEDY
            return translated(model, self.tokenizer, sources, settings, start=self.start, limits=limits)

        def measure(model: nn.Module, part: str, _: Ranks) -> dict[str, Any]:
            pairs, texts = self.parts[part], given[part]
            assert texts is not None
            count = len(pairs) if part == "test" else min(JUDGED, len(pairs))
            written = written_for(model, part, count)
            found = quality(written, texts.targets[:count])
            loss = {"validation_loss": plain_loss(model, pairs, self.start, device)}
            if part == "test":
                return {**loss, **found, "by_length": by_length(texts.sources, written, texts.targets)}
            return {**loss, **{f"validation_{name}": value for name, value in found.items()}}

        def conclude(model: nn.Module, _: RunDirectory) -> dict[str, Any]:
            """Where there is a test, it tells the lengths apart; else what was held out does."""
            texts = self.data.validation.part(range(min(JUDGED, len(self.data.validation))))
            return {BY_LENGTH: by_length(texts.sources, written_for(model, "validation", len(texts)), texts.targets)}

        return Job(
            task=TASK.name,
            config=self.config,
            tokenizer=self.tokenizer,
            source_tokenizer=self.source_tokenizer,
            samples=self.samples(),
            loss=self.loss,
            measure=measure,
            per_epoch=self.per_epoch,
            seconds_per_step=self.seconds_per_step,
            seconds_at_end=self.seconds_at_end,
            has_test=self.data.test is not None,
            conclude=conclude if self.data.test is None else None,
            decides="validation_bleu" if has_bleu() else "validation_loss",
        )

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
            "vocabularies": "joint" if self.spellers.are_one else "separate",
        }


def _learned(config: TokenizerConfig, data: PairData, report: Report) -> Spellers:
    """One vocabulary for both sides, or one for each."""
    sides = [data.train.sources, data.train.targets]
    if data.config.vocabularies == "joint":
        sides = [[*sides[0], *sides[1]]]
    made = [learned_tokenizer(config, texts, sum(map(len, texts)), report) for texts in sides]
    return Spellers(made[0], made[-1])


def _plan(
    request: Request,
    data: PairData,
    spellers: Spellers,
    tokenizer_config: TokenizerConfig | None,
    start: Start | None,
    ranks: Ranks,
) -> Parallel:
    """The model, what the user set on top, then the number of steps by measuring."""
    usual = DEMO_MINUTES if list(data.config.train) == [DEMO] else MINUTES
    minutes = request.minutes if request.steps or request.epochs or request.minutes else usual
    flops = ranks.agree(planning.machine_speed(), torch.device(request.device)) * 60 * (minutes or usual)
    model = request.apply("model", _model(request, data, spellers, start, flops))
    if start is not None:
        start.build(model)  # refuses settings that its weights do not fit
    training = planning.first_training(request, 1, ranks, minutes, _learning(model, start))
    freeze(model.skeleton(), training.freeze)  # refuses more layers than there are
    config = TranslateConfig(
        model=model,
        tokenizer=tokenizer_config,
        data=data.config.override({"length": min(model.max_length, data.config.length or LONGEST)}),  # type: ignore[attr-defined]
        training=training,
        start=request.start,
        objective=request.apply("objective", _objective(data, spellers, start)),
    )
    parallel = Parallel(config, data, spellers)
    pieces = planning.Pieces(parallel.per_epoch, parallel.seconds_per_step, parallel.seconds_at_end)
    training = planning.with_steps(training, request, pieces, ranks)
    if not training.evaluate_every:
        count = EVALUATIONS
        if training.minutes is not None:  # a tenth of the time at most
            fitting = 60 * training.minutes / 10 / max(1e-9, parallel.seconds_of_evaluation)
            count = int(ranks.agree(max(3, min(EVALUATIONS, fitting)), torch.device(training.device)))
        training = training.override({"evaluate_every": max(1, -(-training.steps // count))})
    return Parallel(config.override({"training": training}), data, spellers)


def _model(request: Request, data: PairData, spellers: Spellers, start: Start | None, flops: float) -> ModelConfig:
    if start is not None:
        return start.model
    family, fields = preset(request.model or TASK.family)
    target = spellers.target
    sizes: dict[str, Any] = {"vocab_size": target.vocab_size, "start": target.end}
    if not spellers.are_one:
        sizes["source_vocab_size"] = spellers.source.vocab_size
    model = ModelConfig.pick({"kind": family, **fields, **sizes})
    assert isinstance(model, PairModelConfig)
    return model if fields else model.override(pair_sizes(model, flops, _some_tokens(data, spellers) // 2))


def _some_tokens(data: PairData, spellers: Spellers) -> int:
    """How many tokens there are, told from the first pairs."""
    some = data.train.part(range(min(SOME, len(data.train))))
    return EncodedPairs.of(some, spellers, LONGEST).tokens * len(data.train) // len(some)


def _objective(data: PairData, spellers: Spellers, start: Start | None) -> TextToTextConfig:
    """Large batches for much data, and at least a hundred steps in an epoch otherwise."""
    tokens = max(SMALLEST_BATCH, min(LARGEST_BATCH, _some_tokens(data, spellers) // 100 // 256 * 256))
    return TextToTextConfig(batch_tokens=tokens, **({} if start is None else {"respelling": 0.0}))


def _learning(model: ModelConfig, start: Start | None) -> dict[str, Any]:
    """Rates of a model with one table for reading and writing; recurrent ones learn faster with larger steps."""
    if start is not None:
        return GENTLE
    rates = (0.02, 0.015, 0.005) if isinstance(model, RecurrentPairConfig) else (0.01, 0.005, 0.005)
    names = ("learning_rate", "embedding_rate", "head_rate")
    return {f"optimizer.{name}": rate for name, rate in zip(names, rates, strict=True)}
