"""Pretraining a model that reads: words are hidden and pairs of sentences asked about, on raw text."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
import torch
from torch import nn

from weft.checkpoints import RunDirectory
from weft.data import Labels, Sentences, find_columns, read_examples, read_table, stratified_split, tokenise_sentences
from weft.data.labelled_pairs import LabelledPairs
from weft.data.marks import Marks
from weft.data.pretraining import ENTAILMENT, PretrainingSamples
from weft.errors import ConfigError, DataError
from weft.models import BERTConfig, ModelConfig, preset
from weft.objectives import ObjectiveConfig, PretrainingBatch, pretraining_loss
from weft.tasks import planning
from weft.tasks.job import Job, Report
from weft.tasks.overlap import overlap_warnings
from weft.tasks.preparation import ENCODER_TOKENS, learned_from
from weft.tasks.request import Request
from weft.tasks.run import Run
from weft.tasks.settings import RunConfig
from weft.tasks.sizes import rung_for, sizes_of
from weft.tasks.sources import DataConfig, Source, are_tables, check_unchanged, read_source
from weft.tasks.start import GENTLE, LENGTH, Start
from weft.tasks.task import Prepared, Task
from weft.tasks.vocabulary import encoder_tokenizer_fields
from weft.text import Corpus, Tokenizer, TokenizerConfig
from weft.training import Ranks
from weft.training.freezing import freeze
from weft.training.sums import Sums

MINUTES = 5.0  # when the user says nothing
LEARNING = {"optimizer.learning_rate": 0.015, "optimizer.embedding_rate": 0.002}  # the table of tokens is also the head
USUAL = 256  # samples from which the usual length is told
JUDGED_SEED = 1  # hides the same tokens of the held-out text in every run
HELD_OUT_PAIRS = 0.1


class FillDataConfig(DataConfig):
    """Texts, or tables whose column `text` is read; `pairs` is a table of labelled pairs, for entailment."""

    columns: ClassVar[tuple[str, ...]] = ("text", "pairs")

    text: str | None = None
    pairs: str | None = None


class FillConfig(RunConfig):
    """All settings of a run that learns to fill in."""

    data: FillDataConfig
    objective: ObjectiveConfig = ObjectiveConfig()


class Fill(Task):
    """Hide words of a text and learn to fill them in; ask about pairs of sentences."""

    name = "fill"
    family = "bert"
    families = ("bert",)
    tokenizer = "wordpiece"
    settings = FillConfig
    data = FillDataConfig
    objective = ObjectiveConfig

    def check(self, request: Request) -> None:
        super().check(request)
        asked = ENTAILMENT in request.apply("objective", ObjectiveConfig()).tasks
        given = request.data_config(self.data).pairs
        if asked != bool(given):
            raise ConfigError(
                f"--pairs {given} and nothing to ask about them" if given else "entailment without labelled pairs",
                expected="both --pairs TABLE and entailment in objective.tasks, or neither",
                advice="--pairs nli.csv --set objective.tasks=masked,entailment",
            )

    def check_start(self, run: Run) -> None:
        run.check_reads()

    def prepare(self, request: Request, start: Start | None, ranks: Ranks, report: Report) -> Pretraining:
        config = request.data_config(self.data)
        source = read_fill_source(config)
        for text in overlap_warnings(source) if ranks.is_first else ():
            report({"event": "warning", "text": text})
        tokenizer_config = None
        if start is None:
            fields = encoder_tokenizer_fields(request.tokenizer, source.train.characters)
            tokenizer_config = request.apply("tokenizer", TokenizerConfig.pick(fields))
            tokenizer = learned_from(tokenizer_config, source, report, ENCODER_TOKENS)
        else:
            tokenizer = start.tokenizer
        texts = read_texts(source, config, tokenizer, report)
        report({"event": "phase", "name": "planning"})
        return _plan(request, texts, tokenizer_config, start, ranks)

    def reopen(self, config: FillConfig, run: RunDirectory, report: Report) -> Pretraining:
        source = read_fill_source(config.data)
        if config.data.fingerprint.partition("|")[2] != source.config.fingerprint.partition("|")[2]:
            raise DataError(
                f"the pairs in {config.data.pairs} have changed since this run began",
                advice="put the old table back, or train a new run",
            )
        check_unchanged(config.data, source.config)
        return Pretraining(config, read_texts(source, config.data, Tokenizer.load(run.tokenizer_file), report))


TASK = Fill()


# -- reading ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class FillTexts:
    """Texts as sentences of tokens, and labelled pairs if there are any: to learn from and to judge by."""

    source: Source
    tokenizer: Tokenizer
    parts: dict[str, Sentences]
    pairs: dict[str, LabelledPairs]


def read_fill_source(config: FillDataConfig) -> Source:
    """The texts; rows of a table are documents of their own."""
    source = read_source(config, lambda paths: _corpus(paths, config.text))
    if config.pairs is None:
        return source
    found = source.config.override({"fingerprint": f"{source.config.fingerprint}|{_fingerprint(config.pairs)}"})
    return Source(source.train, source.validation, found, source.test)


def _fingerprint(path: str) -> str:
    """Of all rows of a table."""
    digest = hashlib.sha256()
    for row in read_table(path).rows():
        digest.update("\x1f".join(row.cells).encode("utf-8", "surrogatepass") + b"\x1e")
    return digest.hexdigest()[:16]


def _corpus(paths: tuple[str, ...], column: str | None) -> Corpus | None:
    """Tables as a text with blank lines between its documents; None: these are no tables."""
    if not are_tables(paths):
        if column is not None:
            raise ConfigError(f"--text {column} for {', '.join(paths)}", expected="a table, which has columns")
        return None
    texts: list[str] = []
    for path in paths:
        table = read_table(path)
        name = column or find_columns(table, labelled=False).text
        texts += ["\n".join(line for line in cell.splitlines() if line.strip()) for cell in table.column(name)]
    return Corpus.of_text("\n\n".join(text for text in texts if text.strip()) + "\n", name=", ".join(paths))


def read_texts(source: Source, config: FillDataConfig, tokenizer: Tokenizer, report: Report) -> FillTexts:
    """All texts as tokens."""
    corpora = {"train": source.train, "validation": source.validation}
    corpora |= {"test": source.test} if source.test is not None else {}
    total = sum(corpus.characters for corpus in corpora.values())
    report({"event": "phase", "name": "tokenising", "total": total})
    before, parts = 0, {}
    for name, corpus in corpora.items():

        def progress(done: int, _: int, before: int = before) -> None:
            report({"event": "progress", "phase": "tokenising", "done": before + done, "total": total})

        parts[name] = tokenise_sentences(corpus, tokenizer, progress=progress)
        before += corpus.characters
    pairs = {} if config.pairs is None else _pairs(config.pairs, tokenizer, tuple(parts))
    return FillTexts(source, tokenizer, parts, pairs)


def _pairs(path: str, tokenizer: Tokenizer, names: tuple[str, ...]) -> dict[str, LabelledPairs]:
    """Labelled pairs from a table, a tenth of them held out, and another tenth if there is a test."""
    table = read_table(path)
    examples = read_examples(table, find_columns(table))
    assert examples.labels is not None
    if examples.pairs is None:
        raise DataError(f"{path} has no pairs of texts", expected="two columns of text and one of labels")
    labels = Labels.of(examples.labels, "single", name=table.name)
    values = labels.encode(examples.labels, examples.lines, examples.name)
    keys, both = examples.keys(), list(zip(examples.texts, examples.pairs, strict=True))
    learn = np.arange(len(both))
    places = {}
    for seed, name in enumerate(names[1:]):
        rest, judge = stratified_split(values[learn], HELD_OUT_PAIRS, seed=seed, groups=[keys[n] for n in learn])
        places[name], learn = learn[judge], learn[rest]
    return {
        name: LabelledPairs.of([both[place] for place in part], values[part], labels.classes, tokenizer)
        for name, part in {"train": learn, **places}.items()
    }


# -- training ---------------------------------------------------------------------------------


@dataclass
class Pretraining(Prepared):
    """Sentences, from which samples are made as they are needed."""

    config: FillConfig
    texts: FillTexts

    @property
    def loss(self) -> Callable[..., Any]:
        return pretraining_loss

    @property
    def tokenizer(self) -> Tokenizer:  # type: ignore[override]
        return self.texts.tokenizer

    @property
    def model(self) -> BERTConfig:
        assert isinstance(self.config.model, BERTConfig)
        return self.config.model

    @property
    def length(self) -> int:
        """Tokens of a sample at most."""
        return min(self.model.max_length, self.config.data.length or self.model.max_length)

    def made_from(self, part: str, seed: int) -> PretrainingSamples:
        """Samples of one part of the text."""
        objective = self.config.objective
        return PretrainingSamples(
            self.texts.parts[part],
            Marks.of(self.tokenizer),
            self.length,
            tasks=objective.tasks,
            seed=seed,
            masking=objective.masking,
            pairs=self.texts.pairs.get(part),
        )

    @cached_property
    def usual(self) -> float:
        """Tokens of a sample on average, which may be far below the most."""
        return float(self.learned.batch(np.arange(min(USUAL, self.learned.per_epoch))).lengths.mean())

    @cached_property
    def learned(self) -> PretrainingSamples:
        return self.made_from("train", self.config.training.seed)

    @cached_property
    def judged(self) -> dict[str, PretrainingSamples]:
        """Samples of what is held out and tested on: the same questions in every evaluation."""
        return {part: self._judged(part) for part in self.texts.parts if part != "train"}

    def _judged(self, part: str) -> PretrainingSamples:
        try:
            return self.made_from(part, JUDGED_SEED)
        except DataError as error:
            where = "the text that is held out" if part == "validation" else "the text to test on"
            raise DataError(f"{where}: {error}") from None

    def samples(self) -> Callable[[np.ndarray], PretrainingBatch]:
        learned, objective = self.learned, self.config.objective
        return lambda numbers: PretrainingBatch.of(learned.batch(numbers), objective, self.usual)

    @property
    def judged_tokens(self) -> int:
        return sum(len(part.ids) for name, part in self.texts.parts.items() if name != "train")

    def measure(self, model: nn.Module, part: str, ranks: Ranks) -> dict[str, float]:
        """Loss, and how often each task is right."""
        samples = self.judged[part]
        rows = max(1, 4096 // self.length)
        sums = Sums(self.config.objective.tasks)  # a process without rows names them too
        device = torch.device(self.config.training.device)
        model.eval()
        with torch.no_grad():
            for start in range(ranks.rank * rows, samples.per_epoch, rows * ranks.world):
                numbers = np.arange(start, min(start + rows, samples.per_epoch))
                batch = PretrainingBatch.of(samples.batch(numbers), self.config.objective, self.usual).to(device)
                summed, count, parts = pretraining_loss(model, batch)
                sums.add(float(summed), count, parts)
        if ranks.world > 1:
            sums.share(ranks, device)
        told = {f"validation_{name}": value for name, value in sums.means().items()}
        return {"validation_loss": sums.total / max(1, sums.count), **told}

    def job(self, sample: str | None = None) -> Job:
        return Job(
            task=TASK.name,
            config=self.config,
            tokenizer=self.tokenizer,
            samples=self.samples(),
            loss=self.loss,
            measure=self.measure,
            per_epoch=self.learned.per_epoch,
            seconds_per_step=self.seconds_per_step,
            seconds_at_end=self.seconds_at_end,
            has_test="test" in self.texts.parts,
        )

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
            **self.common_facts(round(self.usual), training.steps * training.batch / self.learned.per_epoch),
        }


def _plan(
    request: Request, texts: FillTexts, tokenizer_config: TokenizerConfig | None, start: Start | None, ranks: Ranks
) -> Pretraining:
    """Sizes by the ladder or by where it starts, what the user set on top, then the number of steps by measuring."""
    minutes = request.minutes if request.steps or request.epochs or request.minutes else MINUTES
    speed = ranks.agree(planning.machine_speed(), torch.device(request.device))
    rung = rung_for(speed * 60 * (minutes or MINUTES))
    objective = request.apply("objective", ObjectiveConfig())
    data = cast("FillDataConfig", texts.source.config)
    if start is None:
        family, fields = preset(request.model or TASK.family)
        model = ModelConfig.pick({"kind": family, **fields, "vocab_size": texts.tokenizer.vocab_size})
        model = model.override({} if fields else sizes_of(rung))
    else:
        model = start.model
        data = data.override({"length": data.length or LENGTH})
    classes = len(texts.pairs["train"].classes) if texts.pairs else 2
    model = request.apply("model", model.override({"head": objective.head(classes)}))
    if start is not None:
        start.build(model)  # refuses settings that its weights do not fit
    planned = LEARNING if start is None else GENTLE
    training = planning.first_training(request, 1, ranks, minutes, planned)
    freeze(model.skeleton(), training.freeze)  # refuses more layers than there are
    config = FillConfig(
        model=model,
        tokenizer=tokenizer_config,
        data=data,
        training=training,
        start=request.start,
        objective=objective,
    )
    made = Pretraining(config, texts)
    batch = max(1, round(rung.batch * rung.length / made.usual))
    training = planning.first_training(request, batch, ranks, minutes, planned)
    made = Pretraining(config.override({"training": training}), texts)
    pieces = planning.Pieces(made.learned.per_epoch, made.seconds_per_step, made.seconds_at_end)
    made = Pretraining(config.override({"training": planning.with_steps(training, request, pieces, ranks)}), texts)
    assert made.judged  # refuses text about which nothing can be asked, before training and not in its first evaluation
    return made
