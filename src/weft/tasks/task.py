"""What a task is: a folder beside this file with one description of itself, found by its name.

The description says which settings the task has and which data mean it, how those are read and planned for, what is
then trained (`plan` gives an `Experiment`), how a run of it is measured and shown, and all words that are said of it. A
folder may hold several (`HOMES` in its `__init__.py`), for models of different families.
"""

from __future__ import annotations

import functools
import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from torch import nn

from weft.config import Config
from weft.errors import ConfigError, DataError, UnsupportedError, did_you_mean
from weft.models import ModelConfig, default_for, families_for, preset, sizing_of
from weft.models.capabilities import DOES, Capability
from weft.tasks.names import REGISTERED, task_folders, task_names
from weft.tasks.settings import RunConfig
from weft.tasks.sources import DataConfig, FilesConfig
from weft.tasks.words import Use, Words
from weft.text import TokenizerConfig
from weft.training import TrainingConfig

if TYPE_CHECKING:
    from weft.generation import Weights
    from weft.tasks.data_check import DataCheck
    from weft.tasks.experiment import Experiment, Origin
    from weft.tasks.request import Request
    from weft.tasks.run import Run


class Task(ABC):
    """One verb of `weft train`.

    capabilities    what its models can do, any of these; the first is the usual one
    tokenizer       the tokenizer when none is named; None: it reads no text
    words           what is said of it
    turn            when it is asked whether data mean this task, the lowest first; None: never
    is_default      it is meant where no task is named and no data tell
    evaluated_by_text  its metrics compare models whose tokens differ
    rounds          it can be measured with rounded weights
    rows            columns of tuples that are given in Python
    takes_texts     it learns from texts alone
    opens           what a run of it is in Python
    data_checks     what `weft check` looks at, where it is no folder beside this file with a `check.py`
    """

    name: ClassVar[str]
    capabilities: ClassVar[tuple[Capability, ...]]
    tokenizer: ClassVar[str | None] = "bpe"
    settings: ClassVar[type[RunConfig]]
    data: ClassVar[type[FilesConfig]] = DataConfig
    objective: ClassVar[type[Config] | None] = None
    writes: ClassVar[bool] = False  # and can show a sample
    words: ClassVar[Words]
    turn: ClassVar[int | None] = None
    is_default: ClassVar[bool] = False
    evaluated_by_text: ClassVar[bool] = False
    rounds: ClassVar[bool] = False
    rows: ClassVar[tuple[tuple[str, ...], ...]] = (("text", "label"), ("text", "pair", "label"))
    takes_texts: ClassVar[bool] = True
    opens: ClassVar[type[Run]]
    data_checks: ClassVar[tuple[DataCheck, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        """A task outside this folder is registered by being defined."""
        super().__init_subclass__(**options)
        name = cls.__dict__.get("name")
        if name is None or cls.__module__.startswith(f"{__package__}."):
            return
        if name in task_names():
            raise ConfigError(f"two tasks are called {name}", expected="a name for each")
        REGISTERED[name] = cls

    # -- which models can do it ---------------------------------------------------------------

    @property
    def family(self) -> str:
        """The model when none is named."""
        return default_for(self.capabilities[0])

    @property
    def families(self) -> list[str]:
        """The models that can be trained for it."""
        return families_for(*self.capabilities)

    def capability(self, family: str) -> Capability:
        """What a model of this family learns in this task."""
        return next(can for can in self.capabilities if family in families_for(can))

    # -- which data mean it -------------------------------------------------------------------

    def recognises(self, paths: Sequence[str], columns: Collection[str]) -> bool:
        """Whether one probably wants to do this with these data; `columns` are options that were given."""
        return False

    def claims(self, request: Request) -> bool:
        """Whether, of the descriptions of this task, the data need this one, whatever the model."""
        return False

    # -- training -----------------------------------------------------------------------------

    def check(self, request: Request) -> None:
        """Refuse what cannot be before anything is read."""
        request.check()
        if request.sample is not None and not self.writes:
            raise ConfigError(f"--sample {request.sample} for {self.name}", expected="no such option for this task")
        if self.tokenizer is None and (request.tokenizer or request.says("tokenizer")):
            raise ConfigError("a tokenizer for images", expected="none: they are no text")
        if request.start is None:
            words = {}
            if self.tokenizer is not None:
                kind = TokenizerConfig.from_config(request.tokenizer or self.tokenizer)
                self.check_tokenizer(request.apply("tokenizer", kind))
                words = {"vocab_size": 512}
            name = request.model or self.family
            family, fields = preset(name)
            self.check_family(name, family)
            head = sizing_of(family, self.capability(family)).head
            request.apply("model", ModelConfig.from_config({"kind": family, **words, **fields, **head}))
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
    def plan(self, origin: Origin) -> Experiment:
        """Read the data and plan the requested training."""

    @abstractmethod
    def reopen(self, config: Any, origin: Origin) -> Experiment:
        """Read the data of a recorded plan again; a change in them is an error."""

    # -- a run of it --------------------------------------------------------------------------

    @abstractmethod
    def read_data(self, config: Any) -> Any:
        """The data of a run, read again."""

    def opens_as(self, config: ModelConfig) -> type[Run]:
        """What a run with this model is in Python."""
        assert config.kind
        return self.opens

    def as_used(self, model: nn.Module, run: Run) -> nn.Module:
        """The trained model as it answers: with what was found out about it once training was over."""
        return model

    @abstractmethod
    def evaluate(self, run: Run, *data: str, weights: Weights) -> dict[str, Any]:
        """The metrics of a run: on its test data if it has any, else on its validation data; or on other data."""

    @abstractmethod
    def examples(self, run: Run, data: Callable[[], Any]) -> dict[str, Any]:
        """A few examples of what a run does: their `kind`, the `examples`, and inputs to look `inside` with; `data`
        gives those of the run, None where they are too many to read again."""

    def predict(self, run: Run, texts: Sequence[str]) -> list[dict[str, Any]]:
        """What a run says of each text, as JSON has it: what the verb of a task from a plugin shows. The tasks of this
        folder have commands with options of their own."""
        raise UnsupportedError(f"{self.name} has no predict", expected="a Task that defines it")

    def sample(self, run: Run) -> dict[str, str] | None:
        """The beginning of a validation text, and what a run writes after it; None: it does not write."""
        return None


# -- all of them ------------------------------------------------------------------------------


def variants(name: str) -> tuple[Task, ...]:
    """The descriptions of one task, for models of different families; the first is the usual one."""
    if name not in task_names():
        raise ConfigError(f"the task {name!r} does not exist yet", advice=did_you_mean(name, task_names()))
    return _in_folder(name) if name in task_folders() else (REGISTERED[name](),)


@functools.cache
def _in_folder(name: str) -> tuple[Task, ...]:
    folder = importlib.import_module(f"weft.tasks.{name}")
    homes = getattr(folder, "HOMES", ("task",))
    return tuple(importlib.import_module(f"{folder.__name__}.{home}").TASK for home in homes)


def find_task(name: str, family: object = None) -> Task:
    """The task of this name for a model of this family, the most special that it can learn; for a family that can learn
    none, the first: it says so."""
    found = variants(name)
    return next((task for task in reversed(found) if family in task.families), found[0])


def _all() -> Iterator[Task]:
    for name in task_names():
        yield from variants(name)


def find_use(config: ModelConfig, task: str | None = None) -> tuple[Task, Use]:
    """What a model is used for, and the task that says so: by what it can do, its own task first."""
    can = [capability.__name__ for capability in DOES if capability in config.provides]
    own = variants(task) if task in task_names() else ()
    for described in (own, tuple(_all())):
        for name in can:
            for one in described:
                if name in one.words.uses:
                    return one, one.words.uses[name]
    raise ConfigError(f"no task says what a {config.kind} is used for", expected="a use of what it can do")


def task_of_model(config: ModelConfig) -> str:
    """The task that a model can do as it is; "read" is a trunk alone: vectors, and a place to begin from."""
    task, use = find_use(config)
    return task.name if use.trained else "read"


def first_use(name: str, path: object) -> str:
    """The command to try first with a run that is used so."""
    uses = (use for task in _all() for use in task.words.uses.values())
    return next(use for use in uses if use.name == name).command(path)


def task_of(paths: Sequence[str], columns: Collection[str] = ()) -> str:
    """What one probably wants to do with these data."""
    asked = sorted((task for task in _all() if task.turn is not None), key=lambda task: task.turn or 0)
    return next(task.name for task in asked if task.recognises(paths, columns))


def default_task() -> str:
    """The task that is meant where none is named and no data are there to tell."""
    return next(task.name for task in _all() if task.is_default)


def read_settings(raw: dict[str, Any], where: object) -> RunConfig:
    """The settings of a run from its config.json, by the task it names."""
    name, model = raw.get("task"), raw.get("model")
    if name not in task_names():
        raise DataError(f"{where} is a run of a task this version does not know: {name!r}")
    task = find_task(str(name), model.get("kind") if isinstance(model, dict) else None)
    return task.settings.from_dict({key: value for key, value in raw.items() if key != "task"})
