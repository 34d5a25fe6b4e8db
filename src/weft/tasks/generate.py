"""Training a model that writes: text in, a run directory out."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from weft.checkpoints import RunDirectory, load_newest
from weft.config import Config
from weft.cost import cost_of
from weft.data import TokenFile, Windows, tokenise
from weft.errors import ConfigError, DataError
from weft.models import GPTConfig, ModelConfig, preset
from weft.objectives import causal_loss
from weft.tasks import planning
from weft.tasks.environment import check_fits, environment, memory_free, memory_in_use, run_readme
from weft.tasks.evaluation import evaluate_text
from weft.tasks.sources import DataConfig, Source, check_unchanged, read_source, short_name
from weft.text import Tokenizer, TokenizerConfig
from weft.training import ALONE, Outcome, Ranks, Trainer, TrainingConfig, ranks_from_environment
from weft.training.pace import Pace
from weft.training.precision import bf16_pays

SAMPLE = 50_000_000  # characters from which sub-words are learned
IN_MEMORY = 64 * 2**20  # texts up to this many bytes are tokenised in memory
Report = Callable[[dict[str, Any]], None]
DEVICES: dict[str, Callable[[], bool]] = {
    "cpu": lambda: True,
    "cuda": torch.cuda.is_available,
    "mps": torch.backends.mps.is_available,
}


def default_device() -> str:
    """A GPU if there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


class GenerateConfig(Config):
    """All settings of a run that learns to write."""

    model: ModelConfig
    tokenizer: TokenizerConfig
    data: DataConfig
    training: TrainingConfig


@dataclass
class Request:
    """What the user asked for; what is None is planned."""

    data: tuple[str, ...]
    model: str = "gpt"
    tokenizer: str | None = None
    validation: tuple[str, ...] = ()
    minutes: float | None = None
    steps: int | None = None
    epochs: float | None = None
    seed: int = 0
    device: str = field(default_factory=default_device)
    threads: int | None = None
    out: str | None = None
    changes: dict[str, str] = field(default_factory=dict)
    dry_run: bool = False
    started: float = field(default_factory=time.perf_counter)

    def check(self) -> None:
        """Refuse what cannot be before anything is read."""
        for name in ("minutes", "steps", "epochs", "threads"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"{name} = {value}", expected="more than 0")
        if self.seed < 0:
            raise ConfigError(f"seed = {self.seed}", expected="0 or more")
        kind = self.device.partition(":")[0]
        if kind not in DEVICES:
            raise ConfigError(f"device {self.device!r}", expected=f"one of {', '.join(DEVICES)}")
        if not DEVICES[kind]():
            raise ConfigError(f"the device {self.device} is not available here", expected="cpu")
        if self.out is not None:
            RunDirectory(self.out).check_free()
        TokenizerConfig.pick(self.tokenizer or "bpe").override(_below("tokenizer", self.changes))
        preset(self.model)


@dataclass
class Prepared:
    """Everything that training needs, in memory."""

    config: GenerateConfig
    source: Source
    tokenizer: Tokenizer
    train: TokenFile
    validation: TokenFile

    @property
    def length(self) -> int:
        assert isinstance(self.config.model, GPTConfig)
        return min(self.config.model.max_length, len(self.train) - 1)

    def samples(self) -> Callable[[np.ndarray], Tensor]:
        windows = Windows(self.train, self.length, self.config.training.seed)
        return lambda numbers: torch.from_numpy(windows.batch(numbers))


def train_generate(request: Request, report: Report) -> tuple[RunDirectory | None, Outcome | None]:
    """Plan, write the run directory, train. `report` is told each event."""
    request.check()
    ranks = ranks_from_environment(request.device)
    torch.set_num_threads(request.threads or os.cpu_count() or 1)
    report({"event": "phase", "name": "reading"})
    source = read_source(DataConfig(train=request.data, validation=request.validation))
    report({"event": "phase", "name": "tokenising", "total": source.train.characters})
    tokenizer_config = TokenizerConfig.pick(planning.tokenizer_fields(request.tokenizer, source.train.characters))
    tokenizer_config = tokenizer_config.override(_below("tokenizer", request.changes))
    learned = SAMPLE if tokenizer_config.kind in ("bpe", "words") else None  # the rest of a huge text adds nothing
    tokenizer = tokenizer_config.train(source.train.pieces(stop=min(source.train.characters, learned or 2**62)))
    train, validation = _token_files(source, tokenizer, report)
    report({"event": "phase", "name": "planning"})
    config = plan(request, source, tokenizer_config, tokenizer, train, validation, ranks)
    prepared = Prepared(config, source, tokenizer, train, validation)
    report({"event": "plan", **describe(prepared)})
    if request.dry_run:
        return None, None
    path = (
        Path(request.out)
        if request.out
        else RunDirectory.next_free(Path("runs"), f"generate-{short_name(request.data)}")
    )
    run = RunDirectory(path)
    if ranks.is_first:
        run = RunDirectory.create(path)
        tokenizer.save(run.tokenizer_file)
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
            return max(1, round(self.epochs * Windows(prepared.train, prepared.length, 0).per_epoch / training.batch))
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
    source = read_source(config.data)
    check_unchanged(config.data, source.config)
    tokenizer = Tokenizer.load(run.tokenizer_file)
    train, validation = _token_files(source, tokenizer, report)
    prepared = Prepared(config, source, tokenizer, train, validation)
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
    settings = prepared.config.training
    check_model(prepared.config.model, prepared.tokenizer, str(run.config_file))
    with run.locked() if ranks.is_first else _nothing():
        torch.manual_seed(settings.seed)
        model = prepared.config.model.build().to(settings.device)
        device = torch.device(settings.device)
        pace = None
        if settings.minutes is not None and started is not None:
            speed = planning.machine_speed()
            assert isinstance(prepared.config.model, GPTConfig)
            evaluation = planning.seconds_to_evaluate(prepared.config.model, len(prepared.validation), speed)
            pace = Pace(started + 60 * settings.minutes - evaluation)
        trainer = Trainer(
            model,
            settings=settings,
            run=run,
            samples=prepared.samples(),
            loss=causal_loss,
            evaluate=lambda: evaluate_text(
                # a sharded model runs on all ranks at once, so they cannot share the work
                model,
                prepared.validation,
                prepared.length,
                device=device,
                ranks=ALONE if settings.sharded else ranks,
            ),
            on_step=lambda values: report({"event": "step", "total": trainer.schedule.total, **values}),
            ranks=ranks,
            pace=pace,
        )
        trainer.identity = prepared.config.to_dict()
        return trainer.train()


def plan(
    request: Request,
    source: Source,
    tokenizer_config: TokenizerConfig,
    tokenizer: Tokenizer,
    train: TokenFile,
    validation: TokenFile,
    ranks: Ranks = ALONE,
) -> GenerateConfig:
    """Sizes by the ladder, what the user set on top, then the number of steps by measuring."""
    device = torch.device(request.device)
    minutes = request.minutes if request.steps or request.epochs or request.minutes else 5.0
    speed = planning.machine_speed()
    rung = planning.rung_for(speed * 60 * (minutes or 5.0))
    family, fields = preset(request.model)
    sizes = {"width": rung.width, "depth": rung.depth, "max_length": rung.length, "attention.heads": rung.heads}
    model = ModelConfig.pick({"kind": family, **fields, "vocab_size": tokenizer.vocab_size})
    model = model.override({} if fields else sizes).override(_below("model", request.changes))
    batch = max(1, rung.batch * rung.length // getattr(model, "max_length", rung.length))
    training = TrainingConfig(
        steps=request.steps or 1,
        batch=batch,
        seed=request.seed,
        threads=request.threads or os.cpu_count() or 1,
        device=request.device,
        minutes=minutes,
        precision="bf16" if ranks.agree(bf16_pays(device), device) else "float32",
    ).override(_below("training", request.changes))
    training = _sharded_if_needed(training, model, ranks)
    config = GenerateConfig(model=model, tokenizer=tokenizer_config, data=source.config, training=training)
    prepared = Prepared(config, source, tokenizer, train, validation)
    if request.epochs is not None:
        per_epoch = Windows(train, prepared.length, 0).per_epoch
        training = training.override({"steps": max(1, round(request.epochs * per_epoch / training.batch))})
    elif minutes is not None:
        assert isinstance(model, GPTConfig)
        each = planning.seconds_per_step(model, training.optimizer, prepared.samples(), training.batch)
        left = request.started + 60 * minutes - time.perf_counter()
        left -= planning.seconds_to_evaluate(model, len(validation), speed)
        steps = max(1, int(ranks.agree(left / each, torch.device(request.device))))
        training = training.override({"steps": steps})
        if not training.checkpoint_every and minutes > 1:
            training = training.override({"checkpoint_every": max(1, round(30 / each))})
    return GenerateConfig(model=model, tokenizer=tokenizer_config, data=source.config, training=training)


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
    config, training = prepared.config, prepared.config.training
    assert isinstance(config.model, GPTConfig)
    cost = cost_of(config.model, batch=training.batch, length=prepared.length)
    return {
        "characters": config.data.characters,
        "tokens": len(prepared.train),
        "validation_tokens": len(prepared.validation),
        "tokenizer": config.tokenizer.kind,
        "vocab_size": prepared.tokenizer.vocab_size,
        "width": config.model.width,
        "depth": config.model.depth,
        "length": prepared.length,
        "parameters": cost.parameters,
        "memory": memory_in_use() + cost.memory,
        "steps": training.steps,
        "batch": training.batch,
        "epochs": round(training.steps * training.batch * prepared.length / len(prepared.train), 2),
        "minutes": training.minutes,
    }


def _token_files(source: Source, tokenizer: Tokenizer, report: Report) -> tuple[TokenFile, TokenFile]:
    folder = None if source.config.bytes < IN_MEMORY else cache_folder()

    def progress(done: int, total: int) -> None:
        report({"event": "progress", "done": done, "total": total})

    train = tokenise(source.train, tokenizer, folder, progress=progress)
    return train, tokenise(source.validation, tokenizer, folder)


def cache_folder() -> Path:
    """Where token files of large texts are kept; `WEFT_CACHE` moves it."""
    return Path(os.environ.get("WEFT_CACHE", Path.home() / ".cache" / "weft"))


def _below(section: str, changes: dict[str, str]) -> dict[str, str]:
    """The changes of one section, without its name."""
    for key in changes:
        if key.partition(".")[0] not in ("model", "tokenizer", "training", "data"):
            raise ConfigError(f"unknown setting {key!r}", expected="model.…, tokenizer.…, training.… or data.…")
    prefix = section + "."
    return {key.removeprefix(prefix): value for key, value in changes.items() if key.startswith(prefix)}


class _nothing:  # noqa: N801
    """A lock that is none: ranks other than the first write nothing."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...
