"""Training word vectors: text in, a vector for each word out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
from torch import nn

from weft.checkpoints import RunDirectory, load_newest
from weft.config import Share
from weft.cost import cost_of
from weft.errors import ConfigError, DataError, UnsupportedError
from weft.generation import Weights
from weft.models import ModelConfig, WordVectorTable, preset, sizing_of
from weft.models.base import Model
from weft.models.block_learning import LearnsBlocks
from weft.models.word2vec.learning import has_loop
from weft.tasks import planning
from weft.tasks.embed.examples import collect_neighbours
from weft.tasks.embed.vectors_run import WordVectors
from weft.tasks.embed.word_list import Blocks, WordList, measured_numbers
from weft.tasks.embed.word_vectors import NearestWords
from weft.tasks.embed.words import EmbedWords
from weft.tasks.environment import memory_in_use, usual_threads
from weft.tasks.experiment import NO_ORIGIN, Experiment, Origin
from weft.tasks.preparation import TokenisedSplits, learned_tokenizer, tokenised
from weft.tasks.request import Request
from weft.tasks.run import Run
from weft.tasks.settings import RunConfig
from weft.tasks.sources import DataConfig, Source, check_unchanged, read_source
from weft.tasks.start import WordStart, read_start
from weft.tasks.task import Task
from weft.tasks.watching import SoftmaxHealthLog
from weft.text import Tokenizer, TokenizerConfig
from weft.training import ALONE, Outcome, Ranks, SGDConfig, TrainingConfig
from weft.training.word_vectors import VectorTrainer

MAX_BLOCK_TOKENS, DEFAULT_BATCH = (
    4096,
    64,
)  # tokens in a block, blocks in a step: of long texts; short ones have smaller
MIN_EPOCHS, MAX_EPOCHS = 5, 20  # readings when the user says nothing: a short text is read more often
TARGET_WORDS = 5_000_000  # words to read in all, before the fewest readings do
MAX_TIMED_EPOCHS = 100  # readings at most, however many minutes there are
CHECKPOINT_SECONDS = 30.0  # seconds between checkpoints
FIRST_VALIDATION_DRAW = 1 << 40  # where the draws for measuring begin


class EmbedDataConfig(DataConfig):
    """Texts. `length` is how many tokens make a block, `lowercase` whether capitals make no other word."""

    validation_share: Share = 0.02
    lowercase: bool = False


class EmbedConfig(RunConfig):
    """All settings of a run that learns word vectors."""

    data: EmbedDataConfig


class Embed(Task):
    """Guess words from the words around them, and so learn a vector for each."""

    name = "embed"
    capabilities = (WordVectorTable,)
    tokenizer = "words"
    settings = EmbedConfig
    data = EmbedDataConfig
    words = EmbedWords()
    opens = WordVectors

    def check(self, request: Request) -> None:
        if request.freeze is not None:
            raise ConfigError(f"--freeze {request.freeze} for embed", expected="no such option for this task")
        super().check(request)

    def check_tokenizer(self, config: TokenizerConfig) -> None:
        if config.kind != "words":
            raise ConfigError(f"the tokenizer {config.kind!r} for word vectors", expected="words")

    def check_start(self, run: Run) -> None:
        if WordVectorTable not in run.model_config.provides:
            raise UnsupportedError(
                f"{run.directory.path} is a {run.model_config.kind}: it has no word vectors to begin with",
                expected="a run of weft train embed, or imported vectors",
            )

    def plan(self, origin: Origin) -> Vectors:
        request, report = origin.asked, origin.report
        if origin.ranks.world > 1:
            raise ConfigError("word vectors under torchrun", expected="one process: it uses all cores by itself")
        source = read_source(request.data_config(EmbedDataConfig))
        characters = source.train.characters
        fields = {"kind": "words", "vocab_size": 1_000_000, "min_count": 5 if characters >= 500_000 else 2}
        tokenizer_config = request.apply("tokenizer", TokenizerConfig.from_config(fields))
        tokenizer = learned_tokenizer(tokenizer_config, source.train.pieces(), characters, report)
        texts = tokenised(source, tokenizer, report)
        report({"event": "phase", "name": "planning"})
        return _plan(origin, texts, tokenizer_config)

    def reopen(self, config: EmbedConfig, origin: Origin) -> Vectors:
        assert origin.run is not None
        source = read_source(config.data)
        check_unchanged(config.data, source.config)
        texts = tokenised(source, Tokenizer.load(origin.run.tokenizer_file), origin.report)
        return Vectors(config, texts, _words(texts, config.data), origin)

    def read_data(self, config: EmbedDataConfig) -> Source:
        return read_source(config)

    def evaluate(self, run: Run, *data: str, weights: Weights) -> dict[str, Any]:
        """Files of word pairs or analogies; without files, the loss on the validation text."""
        if data:
            return NearestWords(run).evaluate(*data)
        if run.is_imported:
            raise DataError(
                f"{run.directory.path} was not trained here: it has no validation data",
                expected="a file of word pairs or of analogies",
            )
        assert isinstance(run.config, EmbedConfig)
        opened = self.reopen(run.config, Origin(run=run.directory))
        part = "test" if opened.has_test else "validation"
        return {"loss": opened.measure(run.model, part)["validation_loss"], "measured_on": part}

    def examples(self, run: Run, data: Callable[[], Any]) -> dict[str, Any]:
        return {"kind": "neighbours", "examples": collect_neighbours(run)}


TASK = Embed()


def _words(texts: TokenisedSplits, data: DataConfig) -> WordList:
    """The words of the text to learn from; two at least."""
    assert isinstance(data, EmbedDataConfig)
    found = WordList.of(texts.tokenizer, texts.train, lowercase=data.lowercase)
    if len(found) < 2:
        raise DataError(
            f"{len(found)} words occur often enough in {', '.join(data.train)}",
            expected="two at least",
            advice="give more text, or --set tokenizer.min_count=1",
        )
    return found


@dataclass
class Vectors(Experiment):
    """Texts as words, read in blocks."""

    task_name = TASK.name
    kept = "the vectors as they were at the end; `words.tsv` has the words, a row each"
    config: EmbedConfig
    texts: TokenisedSplits
    words: WordList
    origin: Origin = NO_ORIGIN
    parts: dict[str, Blocks] = field(init=False)

    def __post_init__(self) -> None:
        table, length = self.words.token_rows(self.texts.tokenizer), self.length
        given = {"train": self.texts.train, "validation": self.texts.validation, "test": self.texts.test}
        self.parts = {name: Blocks(part, table, length) for name, part in given.items() if part is not None}

    @property
    def tokenizer(self) -> Tokenizer:  # type: ignore[override]
        return self.texts.tokenizer

    @property
    def model(self) -> Any:
        return self.config.model

    def loss(self, model: nn.Module, batch: Any) -> NoReturn:
        raise AssertionError("word vectors are learned block by block")

    def samples(self, numbers: np.ndarray) -> NoReturn:
        raise AssertionError("word vectors are learned block by block")

    @property
    def length(self) -> int:
        assert self.config.data.length is not None
        return self.config.data.length

    @property
    def per_epoch(self) -> int:
        return self.parts["train"].count

    @property
    def evaluation_tokens(self) -> int:
        return self.texts.evaluated_tokens

    @property
    def has_test(self) -> bool:
        return self.texts.test is not None

    @cached_property
    def chances(self) -> Any:
        return self.model.skeleton().chances(self.words.counts, self.config.training.seed)

    def workers(self, model: Any, part: str, first: int = 0) -> LearnsBlocks:
        found: LearnsBlocks = model.workers(self.chances, self.parts[part], self.config.training.threads, first)
        return found

    def measure(self, model: nn.Module, part: str, ranks: Ranks = ALONE) -> dict[str, float]:
        """The mean loss of an example, with windows and negatives that are always the same ones."""
        assert ranks.world == 1
        found = self.workers(model, part, FIRST_VALIDATION_DRAW).learn(measured_numbers(self.parts[part]), 0.0)
        if not found.examples:
            raise DataError(
                f"the {part} text has no two known words beside each other",
                expected="something to measure on",
                advice="hold out more:  --set data.validation_share=0.1",
            )
        return {"validation_loss": found.loss / found.examples}

    def seconds_per_step(self) -> float:
        """A step on fresh weights, which are thrown away; the first one may have to wait for the compiler."""
        workers = self.workers(self.model.build().lined_up(), "train")
        batch = self.config.training.batch
        workers.learn([0], 0.0)
        began = time.perf_counter()
        workers.learn(range(batch), 0.025)
        return time.perf_counter() - began

    def seconds_at_end(self) -> float:
        return 0.5

    def initial_model(self, run: RunDirectory) -> Any:
        """Drawn, or with the vectors of words that another run knows; a checkpoint replaces both."""
        model: Any = self.model.build()
        if self.config.start is not None and load_newest(run.checkpoints) is None:
            start = self.origin.start or read_start(self.config.start)
            assert isinstance(start, WordStart)
            start.fill(model, self.words)
        return model.lined_up()

    def learn(self, run: RunDirectory, watch: SoftmaxHealthLog | None) -> tuple[nn.Module, Outcome]:
        """In a run like any other; the words are written first, so that what is there can be used."""
        self.words.save(run.path)
        return super().learn(run, watch)

    def trainer(self, model: Model, **rest: Any) -> VectorTrainer:
        return VectorTrainer(model, workers=self.workers(model, "train"), **rest)

    def warnings(self, plan: dict[str, Any]) -> list[str]:
        told = []
        if plan["tokens"] < 100_000:
            told.append(f"{plan['tokens']:,} words are very little: neighbours will be a matter of luck")
        if not has_loop():
            told.append("numba is not installed, and learning is some hundred times slower:  pip install weft[fast]")
        return told

    def describe(self) -> dict[str, Any]:
        config, training = self.config, self.config.training
        cost = cost_of(config.model, batch=training.batch, length=self.length)
        return {
            "characters": config.data.characters,
            "tokens": int(self.words.counts.sum()),
            "validation_tokens": len(self.texts.validation),
            **({} if self.texts.test is None else {"test_tokens": len(self.texts.test)}),
            "tokenizer": self.tokenizer.kind,
            "vocab_size": len(self.words),
            "model": self.model.kind,
            "width": self.model.width,
            "window": self.model.window,
            "negative": self.model.negative,
            **({} if config.start is None else {"start": config.start}),
            "parameters": cost.parameters,
            "memory": cost.memory(memory_in_use()).total,
            "flops": cost.flops,
            "steps": training.steps,
            "batch": training.batch,
            "epochs": round(training.steps * training.batch / self.parts["train"].count, 2),
            "threads": training.threads,
            "minutes": training.minutes,
        }


def _plan(origin: Origin, texts: TokenisedSplits, tokenizer_config: TokenizerConfig) -> Vectors:
    """Blocks and steps by the length of the text, readings by the user or by the number of words."""
    request, start = origin.asked, origin.start
    tokens = len(texts.train)
    data = texts.source.config
    data = data.override({"length": data.length or max(256, min(MAX_BLOCK_TOKENS, tokens // 200))})
    words = _words(texts, data)
    family, fields = preset(request.model or TASK.family)
    if start is not None:
        family, fields = str(start.model.kind), {"width": start.model.width}  # type: ignore[attr-defined]
    model: Any = request.apply("model", ModelConfig.from_config({"kind": family, **fields, "vocab_size": len(words)}))
    assert isinstance(data, EmbedDataConfig) and data.length is not None
    if model.vocab_size != len(words) or (isinstance(start, WordStart) and model.width != start.width):
        raise ConfigError("another model.vocab_size or width", expected=f"{len(words)} words, and the width it has")
    per_epoch = -(-tokens // data.length)
    batch = max(1, min(DEFAULT_BATCH, per_epoch // 25))
    training = request.training_config(
        TrainingConfig(
            steps=request.steps or 1,
            batch=batch,
            warmup=0.0,
            decay=1.0,
            clip=None,
            seed=request.seed,
            threads=request.threads or usual_threads(),
            minutes=request.minutes,
            device="cpu",
        ).override(sizing_of(model.kind, WordVectorTable).training)
    )
    if not isinstance(training.optimizer, SGDConfig):
        raise ConfigError(f"the optimizer {training.optimizer.kind} for word vectors", expected="sgd")
    config = EmbedConfig(model=model, tokenizer=tokenizer_config, data=data, training=training, start=request.start)
    vectors = Vectors(config, texts, words, origin)
    for part in set(vectors.parts) - {"train"}:
        vectors.measure(model.build(), part)  # refuses what nothing could be measured on
    return replace(vectors, config=config.override({"training": _with_steps(vectors, request, per_epoch)}))


def _with_steps(vectors: Vectors, request: Request, per_epoch: int) -> TrainingConfig:
    """How long; measured and saved after each reading, and every half minute."""
    training = vectors.config.training
    each = vectors.seconds_per_step()
    read = int(vectors.words.counts.sum())
    epochs = MAX_TIMED_EPOCHS if training.minutes else min(MAX_EPOCHS, max(MIN_EPOCHS, -(-TARGET_WORDS // read)))
    pieces = planning.Pieces(per_epoch, lambda: each, vectors.seconds_at_end, epochs)
    training = planning.with_steps(training, request, pieces, ALONE)
    once = max(1, round(per_epoch / training.batch))
    saved = max(1, min(once, round(CHECKPOINT_SECONDS / each)))
    return training.override(
        {
            "evaluate_every": training.evaluate_every or once,
            "checkpoint_every": vectors.config.training.checkpoint_every or saved,
        }
    )
