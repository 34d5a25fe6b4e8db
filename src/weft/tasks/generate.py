"""Training a model that writes: text in, a run directory out."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from weft.checkpoints import RunDirectory, load_newest
from weft.checkpoints.files import read_json
from weft.config import Config
from weft.cost import cost_of
from weft.data import TokenFile, Windows, tokenise
from weft.errors import DataError
from weft.models import GPTConfig, ModelConfig, preset
from weft.objectives import causal_loss
from weft.tasks import planning
from weft.tasks.environment import check_fits, environment, memory_free, memory_in_use, run_readme
from weft.tasks.evaluation import evaluate_text
from weft.tasks.overlap import overlap_warnings
from weft.tasks.request import Request
from weft.tasks.sources import DataConfig, Source, check_unchanged, read_source, short_name
from weft.tasks.vocabulary import tokenizer_fields
from weft.text import Tokenizer, TokenizerConfig
from weft.training import ALONE, Outcome, Ranks, Trainer, TrainingConfig, ranks_from_environment
from weft.training.pace import Pace
from weft.training.precision import bf16_pays
from weft.training.resume import load_model_tensors

SAMPLE = 50_000_000  # characters from which sub-words are learned
IN_MEMORY = 64 * 2**20  # texts up to this many bytes are tokenised in memory
Report = Callable[[dict[str, Any]], None]
TEST_FILE = "test.json"


class GenerateConfig(Config):
    """All settings of a run that learns to write."""

    model: ModelConfig
    tokenizer: TokenizerConfig
    data: DataConfig
    training: TrainingConfig


@dataclass(frozen=True)
class Texts:
    """The texts of a run as tokens; what is to be tested on is not looked at before the end."""

    source: Source
    tokenizer: Tokenizer
    train: TokenFile
    validation: TokenFile
    test: TokenFile | None = None

    @property
    def judged(self) -> int:
        """Tokens that are evaluated once training is over."""
        return len(self.validation) + (len(self.test) if self.test is not None else 0)


@dataclass
class Prepared:
    """Everything that training needs."""

    config: GenerateConfig
    texts: Texts

    @property
    def length(self) -> int:
        assert isinstance(self.config.model, GPTConfig)
        return min(self.config.model.max_length, len(self.texts.train) - 1)

    def samples(self) -> Callable[[np.ndarray], Tensor]:
        windows = Windows(self.texts.train, self.length, self.config.training.seed)
        return lambda numbers: torch.from_numpy(windows.batch(numbers))


def train_generate(request: Request, report: Report) -> tuple[RunDirectory | None, Outcome | None]:
    """Plan, write the run directory, train. `report` is told each event."""
    request.check()
    ranks = ranks_from_environment(request.device)
    torch.set_num_threads(request.threads or os.cpu_count() or 1)
    report({"event": "phase", "name": "reading"})
    source = read_source(request.data_config())
    for text in overlap_warnings(source) if ranks.is_first else ():
        report({"event": "warning", "text": text})
    fields = tokenizer_fields(request.tokenizer, source.train.characters)
    tokenizer_config = request.apply("tokenizer", TokenizerConfig.pick(fields))
    texts = _tokenised(source, _learned(tokenizer_config, source, report), report)
    report({"event": "phase", "name": "planning"})
    config = plan(request, texts, tokenizer_config, ranks)
    prepared = Prepared(config, texts)
    description = describe(prepared)
    for text in planning.warnings(description):
        report({"event": "warning", "text": text})
    report({"event": "plan", **description})
    if request.dry_run:
        return None, None
    path = (
        Path(request.out)
        if request.out
        else RunDirectory.next_free(Path("runs"), f"generate-{short_name(config.data.train)}")
    )
    run = RunDirectory(path)
    if ranks.is_first:
        run = RunDirectory.create(path)
        texts.tokenizer.save(run.tokenizer_file)
        run.write_json("environment.json", environment())
        run.write_file("README.md", run_readme(run.path))
        run.write_config({"task": "generate", **config.to_dict()})
    ranks.wait()
    return run, _train(run, prepared, ranks, report, started=request.started)


@dataclass(frozen=True)
class Further:
    """How much further a finished run is trained; all None: not at all."""

    minutes: float | None = None
    steps: int | None = None
    epochs: float | None = None

    def count(self, prepared: Prepared) -> int:
        """In steps."""
        training, model = prepared.config.training, prepared.config.model
        if self.steps is not None:
            return self.steps
        if self.epochs is not None:
            return max(
                1, round(self.epochs * Windows(prepared.texts.train, prepared.length, 0).per_epoch / training.batch)
            )
        assert self.minutes is not None and isinstance(model, GPTConfig)
        each = planning.seconds_per_step(model, training.optimizer, prepared.samples(), training.batch)
        return max(1, int(60 * self.minutes / each))


NO_FURTHER = Further()


def resume_generate(path: str, report: Report, further: Further = NO_FURTHER) -> tuple[RunDirectory, Outcome]:
    """Go on from the newest sound checkpoint; a finished run can be trained `further`, with a new curve."""
    run = RunDirectory.open(path)
    raw = run.read_config()
    raw.pop("task", None)
    config = GenerateConfig.from_dict(raw)
    ranks = ranks_from_environment(config.training.device)
    torch.set_num_threads(config.training.threads)
    report({"event": "phase", "name": "reading"})
    source = read_source(config.data)
    check_unchanged(config.data, source.config)
    prepared = Prepared(config, _tokenised(source, Tokenizer.load(run.tokenizer_file), report))
    if further != NO_FURTHER and ranks.is_first:
        checkpoint = load_newest(run.checkpoints)
        if checkpoint is None or not checkpoint.state["progress"]["finished"]:
            raise DataError(
                f"{path} is not finished", expected="a finished run to train further", advice="resume it first"
            )
        steps = checkpoint.step + further.count(prepared)
        run.add_event({"event": "extend", "step": checkpoint.step, "steps": steps})
    ranks.wait()
    return run, _train(run, prepared, ranks, report)


def check_model(model: ModelConfig, tokenizer: Tokenizer, where: str) -> None:
    """What files say of a model must make sense together before it is built."""
    assert isinstance(model, GPTConfig)
    if tokenizer.vocab_size > model.vocab_size:
        raise DataError(
            f"tokenizer.json has {tokenizer.vocab_size} tokens, the model in {where} knows {model.vocab_size}",
            expected="the tokenizer that the model was trained with",
        )
    check_fits(cost_of(model, batch=1, length=1).parameters, where)


def _train(
    run: RunDirectory, prepared: Prepared, ranks: Ranks, report: Report, *, started: float | None = None
) -> Outcome:
    """With `started`, the plan is fitted to the clock on the way; a resumed run keeps the plan as it is."""
    settings, texts, config = prepared.config.training, prepared.texts, prepared.config.model
    check_model(config, texts.tokenizer, str(run.config_file))
    report({"event": "phase", "name": "training"})
    with run.locked() if ranks.is_first else nullcontext():
        torch.manual_seed(settings.seed)
        model = config.build().to(settings.device)
        pace = None
        if settings.minutes is not None and started is not None:
            assert isinstance(config, GPTConfig)
            evaluation = planning.seconds_to_evaluate(config, texts.judged, planning.machine_speed())
            pace = Pace(started + 60 * settings.minutes - evaluation)

        def evaluate(tokens: TokenFile) -> dict[str, float]:
            # a sharded model runs on all ranks at once, so they cannot share the work
            shared = ALONE if settings.sharded else ranks
            return evaluate_text(model, tokens, prepared.length, device=torch.device(settings.device), ranks=shared)

        trainer = Trainer(
            model,
            settings=settings,
            run=run,
            samples=prepared.samples(),
            loss=causal_loss,
            evaluate=lambda: evaluate(texts.validation),
            on_step=lambda values: report({"event": "step", "total": trainer.schedule.total, **values}),
            ranks=ranks,
            pace=pace,
        )
        trainer.identity = prepared.config.to_dict()
        trainer.identity["data"].pop("test")  # its content is in the fingerprint, and older runs have no such field
        outcome = trainer.train()
        if texts.test is not None and outcome.stopped_by != "signal":
            report({"event": "phase", "name": "testing", "step": outcome.progress.best_step})
            load_model_tensors(trainer, run.read_model())  # the best weights; those in memory may be later
            metrics = evaluate(texts.test)
            found = {"step": outcome.progress.best_step, "test_loss": metrics["validation_loss"]}
            if ranks.is_first:
                run.write_json(TEST_FILE, found | {"bits_per_byte": metrics["bits_per_byte"]})
        return outcome


def final_metrics(run: RunDirectory, outcome: Outcome) -> dict[str, Any]:
    """How good the best weights are: on the test text if there is one, else on the held-out text."""
    progress = outcome.progress
    found = {
        "validation_loss": progress.best,
        "bits_per_byte": progress.best_metrics.get("bits_per_byte"),
        "measured_on": "validation",
    }
    if (run.path / TEST_FILE).exists():
        test = read_json(run.path / TEST_FILE)
        if test["step"] == progress.best_step:  # else it is of weights that were best before
            found |= {"test_loss": test["test_loss"], "bits_per_byte": test["bits_per_byte"], "measured_on": "test"}
    return found


def plan(request: Request, texts: Texts, tokenizer_config: TokenizerConfig, ranks: Ranks = ALONE) -> GenerateConfig:
    """Sizes by the ladder, what the user set on top, then the number of steps by measuring."""
    device = torch.device(request.device)
    minutes = request.minutes if request.steps or request.epochs or request.minutes else 5.0
    speed = planning.machine_speed()
    rung = planning.rung_for(speed * 60 * (minutes or 5.0))
    family, fields = preset(request.model)
    sizes = {"width": rung.width, "depth": rung.depth, "max_length": rung.length, "attention.heads": rung.heads}
    model = ModelConfig.pick({"kind": family, **fields, "vocab_size": texts.tokenizer.vocab_size})
    model = request.apply("model", model.override({} if fields else sizes))
    batch = max(1, rung.batch * rung.length // getattr(model, "max_length", rung.length))
    training = TrainingConfig(
        steps=request.steps or 1,
        batch=batch,
        seed=request.seed,
        threads=request.threads or os.cpu_count() or 1,
        device=request.device,
        minutes=minutes,
        precision="bf16" if ranks.agree(bf16_pays(device), device) else "float32",
    )
    training = _sharded_if_needed(request.apply("training", training), model, ranks)
    data = texts.source.config
    config = GenerateConfig(model=model, tokenizer=tokenizer_config, data=data, training=training)
    prepared = Prepared(config, texts)
    if request.epochs is not None:
        per_epoch = Windows(texts.train, prepared.length, 0).per_epoch
        training = training.override({"steps": max(1, round(request.epochs * per_epoch / training.batch))})
    elif minutes is not None:
        assert isinstance(model, GPTConfig)
        each = planning.seconds_per_step(model, training.optimizer, prepared.samples(), training.batch)
        left = request.started + 60 * minutes - time.perf_counter()
        left -= planning.seconds_to_evaluate(model, texts.judged, speed)
        steps = max(1, int(ranks.agree(left / each, device)))
        training = training.override({"steps": steps})
        if not training.checkpoint_every and minutes > 1:
            training = training.override({"checkpoint_every": max(1, round(30 / each))})
    return GenerateConfig(model=model, tokenizer=tokenizer_config, data=data, training=training)


def _sharded_if_needed(training: TrainingConfig, model: ModelConfig, ranks: Ranks) -> TrainingConfig:
    """Divide the parameters among the processes when each could not hold them all."""
    if ranks.world == 1 or training.sharded or not isinstance(model, GPTConfig):
        return training
    needed = cost_of(model, batch=max(1, training.batch // ranks.world), length=model.max_length).memory
    if needed < memory_free(training.device) / (1 if training.device != "cpu" else ranks.world):
        return training
    return training.override({"optimizer.kind": "adamw", "sharded": True})


def describe(prepared: Prepared) -> dict[str, Any]:
    """The plan in numbers, for people and programs."""
    config, texts, training = prepared.config, prepared.texts, prepared.config.training
    assert isinstance(config.model, GPTConfig)
    cost = cost_of(config.model, batch=training.batch, length=prepared.length)
    return {
        "characters": config.data.characters,
        "tokens": len(texts.train),
        "validation_tokens": len(texts.validation),
        **({} if texts.test is None else {"test_tokens": len(texts.test)}),
        "tokenizer": config.tokenizer.kind,
        "vocab_size": texts.tokenizer.vocab_size,
        "width": config.model.width,
        "depth": config.model.depth,
        "length": prepared.length,
        "parameters": cost.parameters,
        "memory": memory_in_use() + cost.memory,
        "steps": training.steps,
        "batch": training.batch,
        "epochs": round(training.steps * training.batch * prepared.length / len(texts.train), 2),
        "minutes": training.minutes,
    }


def _learned(config: TokenizerConfig, source: Source, report: Report) -> Tokenizer:
    """A tokenizer made from the text to learn from; of a huge one, the rest adds nothing to sub-words."""
    total = source.train.characters
    if config.kind in ("bpe", "words"):
        total = min(total, SAMPLE)
    phase = "learning the vocabulary"
    if config.kind != "bytes":  # there is nothing to learn
        report({"event": "phase", "name": phase, "total": total})

    def progress(done: int) -> None:
        report({"event": "progress", "phase": phase, "done": done, "total": total})

    return config.train(source.train.pieces(stop=total), progress=progress)


def _tokenised(source: Source, tokenizer: Tokenizer, report: Report) -> Texts:
    """All texts as tokens: in memory, or in files if they are large."""
    folder = None if source.config.bytes < IN_MEMORY else cache_folder()
    corpora = [source.train, source.validation, *([source.test] if source.test is not None else [])]
    total = sum(corpus.characters for corpus in corpora)
    report({"event": "phase", "name": "tokenising", "total": total})
    before, tokens = 0, []
    for corpus in corpora:

        def progress(done: int, _: int, before: int = before) -> None:
            report({"event": "progress", "phase": "tokenising", "done": before + done, "total": total})

        tokens.append(tokenise(corpus, tokenizer, folder, progress=progress))
        before += corpus.characters
    for corpus, found in zip(corpora[1:], tokens[1:], strict=True):
        if len(found) < 2:
            name = corpus.documents[-1].name
            raise DataError(f"{len(found)} tokens of {name} to measure on", expected="at least 2", advice="give more")
    return Texts(source, tokenizer, *tokens)


def cache_folder() -> Path:
    """Where token files of large texts are kept; `WEFT_CACHE` moves it."""
    return Path(os.environ.get("WEFT_CACHE", Path.home() / ".cache" / "weft"))
