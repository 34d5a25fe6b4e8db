"""What a task is: which settings it has, how its data are read and planned for, and what is then trained.

A task is a file with one class here; the flow around it (`flow.py`: begin, resume, train further) and the run
itself (`job.py`) are the same for all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from weft.checkpoints import RunDirectory
from weft.config import Config
from weft.cost import cost_of
from weft.errors import ConfigError, did_you_mean
from weft.models import ModelConfig, preset
from weft.tasks import planning
from weft.tasks.environment import memory_in_use
from weft.tasks.held_out import HeldOut
from weft.tasks.job import Job, Report
from weft.tasks.request import Request
from weft.tasks.run import Run
from weft.tasks.settings import HOMES, RunConfig, home_of
from weft.tasks.sources import DataConfig, FilesConfig
from weft.tasks.start import Start
from weft.text import Tokenizer, TokenizerConfig
from weft.training import Ranks, TrainingConfig


class Prepared(ABC):
    """Data and settings of one run, ready to be trained.

    length          tokens that are read at a time
    judged_tokens   tokens that are read to measure, once training is over
    loss            a summed loss of a batch, how many terms it has, and perhaps its parts by name
    """

    config: RunConfig
    tokenizer: Tokenizer | None  # None: it reads no text
    source_tokenizer: Tokenizer | None = (
        None  # of texts that are read, where it is another than that of what is written
    )

    @property
    @abstractmethod
    def loss(self) -> Callable[..., Any]: ...

    @property
    @abstractmethod
    def length(self) -> int: ...

    @property
    @abstractmethod
    def judged_tokens(self) -> int: ...

    @abstractmethod
    def samples(self) -> Callable[[np.ndarray], Any]:
        """What gives the batch with these sample numbers."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """The plan in numbers, for people and programs."""

    def warnings(self, plan: dict[str, Any]) -> list[str]:
        """What the plan already tells about the result."""
        return []

    @abstractmethod
    def job(self, sample: str | None = None) -> Job:
        """What there is to do; `sample` is what the model is to show before and after."""

    def held_out(self) -> HeldOut:
        """A few inputs of what is held out, to look at the model with; none where there is nothing to look at."""
        return HeldOut(self.loss, [])

    def seconds_per_step(self) -> float:
        """Measured with fresh weights, which are thrown away."""
        return planning.seconds_per_step(self.config.model.build(), self.config.training, self.samples(), self.loss)

    def seconds_at_end(self) -> float:
        """Forward alone is a third of a step; shapes are large, so the speed is that of plain products."""
        cost = cost_of(self.config.model, batch=1, length=self.length)
        return self.judged_tokens * cost.flops / cost.tokens / 3 / planning.machine_speed()

    def common_facts(self, read: int, epochs: float, texts: int | None = None) -> dict[str, Any]:
        """What every plan for texts says: tokenizer, model, memory for texts of `read` tokens (so many in a step),
        how long."""
        config, training = self.config, self.config.training
        assert self.tokenizer is not None
        model: Any = config.model
        cost = cost_of(model, batch=training.batch if texts is None else texts, length=read)
        return {
            "tokenizer": self.tokenizer.kind,
            "vocab_size": self.tokenizer.vocab_size,
            "model": model.kind,
            "width": model.width,
            "depth": model.depth,
            "length": self.length,
            **({} if config.start is None else {"start": config.start}),
            "parameters": cost.parameters,
            "memory": memory_in_use() + cost.memory,
            "flops": cost.flops,  # of one step
            "steps": training.steps,
            "batch": training.batch,
            "epochs": round(epochs, 2),
            "minutes": training.minutes,
        }


class Task(ABC):
    """One verb of `weft train`.

    family      the model when none is named
    tokenizer   the tokenizer when none is named; None: it reads no text
    """

    name: ClassVar[str]
    family: ClassVar[str]
    families: ClassVar[tuple[str, ...]]
    tokenizer: ClassVar[str | None] = "bpe"
    settings: ClassVar[type[RunConfig]]
    data: ClassVar[type[FilesConfig]] = DataConfig
    objective: ClassVar[type[Config] | None] = None
    writes: ClassVar[bool] = False  # and can show a sample
    on_top: ClassVar[Mapping[str, Any]] = {}  # fields that a model of any family has for this task

    def check(self, request: Request) -> None:
        """Refuse what cannot be before anything is read."""
        request.check()
        if request.sample is not None and not self.writes:
            raise ConfigError(f"--sample {request.sample} for {self.name}", expected="no such option for this task")
        if self.tokenizer is None and (request.tokenizer or request.says("tokenizer")):
            raise ConfigError("a tokenizer for pictures", expected="none: they are no text")
        if request.start is None:
            words = {}
            if self.tokenizer is not None:
                kind = TokenizerConfig.pick(request.tokenizer or self.tokenizer)
                self.check_tokenizer(request.apply("tokenizer", kind))
                words = {"vocab_size": 512}
            name = request.model or self.family
            family, fields = preset(name)
            self.check_family(name, family)
            request.apply("model", ModelConfig.pick({"kind": family, **words, **fields, **self.on_top}))
        elif request.tokenizer or request.model or request.says("tokenizer"):
            raise ConfigError(
                f"--from {request.start} with a model or tokenizer of its own",
                expected="neither: both come with the weights",
            )
        request.training_config(TrainingConfig(steps=1, batch=1))
        request.data_config(self.data)
        if self.objective is not None:
            request.apply("objective", self.objective())
        elif request.says("objective"):
            raise ConfigError(f"settings of an objective for {self.name}", expected="none: there is nothing to choose")

    def check_family(self, name: str, family: str) -> None:
        """Refuse a model that cannot do it."""
        if family not in self.families:
            raise ConfigError(
                f"--model {name} is a {family}: not for {self.name}", expected=f"one of {', '.join(self.families)}"
            )

    def check_tokenizer(self, config: TokenizerConfig) -> None:
        """Refuse a tokenizer that cannot do it; most can."""
        assert config.kind

    @abstractmethod
    def check_start(self, run: Run) -> None:
        """Refuse a model to begin from that cannot do it."""

    @abstractmethod
    def prepare(self, request: Request, start: Start | None, ranks: Ranks, report: Report) -> Prepared:
        """Read the data and plan."""

    @abstractmethod
    def reopen(self, config: Any, run: RunDirectory, report: Report) -> Prepared:
        """Read the data of a recorded plan again; a change in them is an error."""


def find_task(name: str, family: object = None) -> Task:
    """The task of this name, for models of this family; None: the usual one."""
    if name not in HOMES:
        raise ConfigError(f"the task {name!r} does not exist yet", advice=did_you_mean(name, HOMES))
    found = home_of(name, family)
    assert isinstance(found, Task)
    return found
