"""A model, opened: a run that was trained here, one that was imported, or a Hugging Face folder as it is."""

from __future__ import annotations

import functools
import html
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np
import torch
from torch import nn

from weft.checkpoints import RunDirectory
from weft.checkpoints.files import read_json
from weft.checkpoints.hugging_face import HuggingFaceFolder
from weft.checkpoints.status import newest_progress, run_status
from weft.data import TokenFile, tokenise
from weft.errors import (
    ConfigError,
    DataError,
    MissingMethodError,
    UnsupportedError,
    WeftError,
    WeightsError,
    did_you_mean,
)
from weft.generation import Weights
from weft.models import CausalLM, ClassifiesImages, EncodesImages, FillsMasks, ModelConfig, Seq2SeqLM, learns, named
from weft.models.converter import is_foreign
from weft.tasks.environment import check_fits
from weft.tasks.names import task_names
from weft.tasks.preparation import check_model
from weft.tasks.results import metrics_of
from weft.tasks.settings import RunConfig
from weft.tasks.sources import DataConfig, Source, read_source
from weft.tasks.task import Task, find_task, find_use, read_settings, task_of_model
from weft.tasks.use import what_it_does
from weft.text import Corpus, Tokenizer

if TYPE_CHECKING:
    from weft.analysis.view import AttentionView

MAX_WINDOW_TOKENS = 1024  # tokens in a window when an imported model, which may allow a million, is measured


class Run:
    """What every opened run has; `weft.load(DIR)` gives what its task makes of it. Everything is read when it is first
    used. `reporter` and `exporter` make pages and files for other programs: `weft.api` puts them here."""

    reporter: ClassVar[Callable[[Path], Path] | None] = None
    exporter: ClassVar[Callable[[Path, str | Path, str | None], dict[str, Any]] | None] = None

    def __init__(self, path: str | Path) -> None:
        self.directory = RunDirectory.open(path)
        self.packed_models: dict[str, nn.Module] = {}  # for writing, by the form of their weights

    def __repr__(self) -> str:
        """What it is and how good, as far as its files tell."""
        told = [str(self.directory.path)]
        try:
            told.append(self.describe_model())
            told += [best] if (best := self.description.words.best(self.metrics)) else []
        except WeftError:
            told = told[:1]
        return f"{type(self).__name__}({', '.join(told)})"

    def __getattr__(self, name: str) -> NoReturn:
        """What it cannot do is refused with what it can."""
        if name.startswith("_") or hasattr(type(self), name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        able = [n for n in dir(type(self)) if not n.startswith("_") and not hasattr(Run, n)]
        does = f", a {self.model_config.kind}: it {what_it_does(self.model_config)}"
        raise MissingMethodError(
            f"{self.directory.path} is a {type(self).__name__} and has no .{name}{does}",
            expected=f"one of {', '.join('.' + n for n in able)}, or what all runs have" if able else "",
            advice=did_you_mean(name, [n for n in dir(type(self)) if not n.startswith("_")]),
        )

    def describe_model(self) -> str:
        """Its model in a few words."""
        config = self.model_config
        if not config.learned_in_steps:
            return f"{config.kind} of order {getattr(config, 'order', '?')}"
        layers = f"{getattr(config, 'depth', 0)} layers of " if hasattr(config, "depth") else ""
        return f"{config.kind}, {layers}width {getattr(config, 'width', '?')}"

    @property
    def metrics(self) -> dict[str, Any]:
        """How good its best weights are, with `measured_on`; empty before the first checkpoint and for a model from
        elsewhere."""
        progress = {} if self.is_imported else newest_progress(self.directory.path)
        return metrics_of(self.directory, progress) if progress.get("best_metrics") else {}

    def _repr_html_(self) -> str:
        """A small table for notebooks; it never fails, and shows nothing unescaped."""
        rows: dict[str, object] = {"run": self.directory.path, "is a": type(self).__name__}
        try:
            config = self.model_config
            rows["model"] = Run.describe_model(self)
            if config.learned_in_steps:
                rows["parameters"] = f"{sum(p.numel() for p in config.skeleton().parameters()):,}"
            if EncodesImages in config.provides:
                rows["classes"] = f"{config.head.classes:,}"  # type: ignore[attr-defined]
            else:
                rows["vocabulary"] = f"{getattr(config, 'vocab_size', 0):,}"
            best = None if self.folder else run_status(self.directory.path).best
            rows |= {"validation loss": f"{best:.4f}"} if best is not None else {}
            rows |= {"best": told} if (told := self.description.words.best(self.metrics)) else {}
            rows |= {"imported from": self.origin["source"]} if self.origin else {}
        except WeftError as error:
            rows["problem"] = error
        cells = (f"<tr><th>{name}</th><td>{html.escape(str(value))}</td></tr>" for name, value in rows.items())
        return f"<table>{''.join(cells)}</table>"

    # -- what it is ---------------------------------------------------------------------------

    @functools.cached_property
    def folder(self) -> HuggingFaceFolder | None:
        """The Hugging Face folder, if it is one: recognised by its config.json."""
        found = read_json(self.directory.config_file)
        return HuggingFaceFolder(self.directory.path) if is_foreign(found) else None

    @functools.cached_property
    def _raw(self) -> dict[str, Any]:
        return self.directory.read_config()

    @property
    def origin(self) -> dict[str, Any]:
        """Where an imported model comes from: `converter` and `source`; empty for a run that was trained here."""
        if self.folder is not None:
            return {"converter": self.folder.converter.name, "source": str(self.folder.path)}
        found = self._raw.get("origin")
        return found if isinstance(found, dict) and {"converter", "source"} <= found.keys() else {}

    @functools.cached_property
    def config(self) -> RunConfig:
        """All settings of the training; a model that was not trained here has none."""
        if self.is_imported:
            raise DataError(
                f"{self.directory.path} was not trained here: it has no settings of data and training",
                advice="its model is described by .model_config",
            )
        return read_settings(self._raw, self.directory.path)

    @property
    def task(self) -> str:
        """What it learned to do; a model from elsewhere, what it can do as it is."""
        return str(self._raw.get("task")) if self.folder is None else task_of_model(self.model_config)

    @property
    def description(self) -> Task:
        """The task that says how it is used; that of a trunk from elsewhere is the one that trains such trunks."""
        name = self.task if self.task in task_names() else find_use(self.model_config)[0].name
        return find_task(name, self.model_config.kind)

    @functools.cached_property
    def model_config(self) -> ModelConfig:
        """Sizes and parts of the model."""
        if self.folder is not None:
            return self.folder.config
        if not self.origin:
            return self.config.model
        try:
            return ModelConfig.from_config(self._raw.get("model", {}))
        except ConfigError as error:
            raise DataError(f"{self.directory.config_file}: {error}") from None

    # -- its parts ----------------------------------------------------------------------------

    @functools.cached_property
    def tokenizer(self) -> Tokenizer:
        """Text to ids and back."""
        if self.folder is not None:
            return self.folder.read_tokenizer()
        if self.origin and not self.has_tokenizer:
            raise DataError(
                f"{self.directory.path} was imported without a tokenizer", expected="ids", advice="use .model(ids)"
            )
        return Tokenizer.load(self.directory.tokenizer_file)

    @functools.cached_property
    def source_tokenizer(self) -> Tokenizer:
        """That of the texts it reads; mostly the same."""
        if self.folder is not None:
            return self.folder.read_source_tokenizer() or self.tokenizer
        file = self.directory.source_tokenizer_file
        return Tokenizer.load(file) if file.exists() else self.tokenizer

    @property
    def has_tokenizer(self) -> bool:
        """Whether there is a tokenizer: models from elsewhere may come without."""
        return self.folder.has_tokenizer if self.folder is not None else self.directory.tokenizer_file.exists()

    @functools.cached_property
    def model(self) -> nn.Module:
        """The model with its best weights, ready for use."""
        config, where = self.model_config, str(self.directory.config_file)
        if not self.is_imported and not self.directory.model_file.exists():
            raise DataError(f"{self.directory.path} has no weights yet", advice=f"weft resume {self.directory.path}")
        try:
            check_fits(sum(p.numel() for p in config.skeleton().parameters()), where)
        except ConfigError as error:
            raise DataError(f"{where}: {error}") from None
        if EncodesImages in config.provides:
            check_model(config, None, where)
        elif not self.is_imported or self.has_tokenizer:
            check_model(config, self.tokenizer, where, self.source_tokenizer)
        if self.folder is not None:
            return config.with_weights(self.folder.read_weights()).eval()
        try:
            weights = config.as_used(self.directory.read_model())
            model = config.with_weights(weights)
            return (model if self.is_imported else self.description.as_used(model, self)).eval()
        except WeightsError as error:
            raise DataError(
                f"{self.directory.model_file} does not fit config.json: {error}", advice="one of the two was changed"
            ) from None

    @property
    def is_imported(self) -> bool:
        """Whether it was trained elsewhere: imported, or a Hugging Face folder."""
        return self.folder is not None or bool(self.origin)

    @property
    def context(self) -> int:
        """How many tokens it reads at once when it is measured."""
        self.check_writes()
        context = self.model_config.context
        return (
            min(context or MAX_WINDOW_TOKENS, MAX_WINDOW_TOKENS) if self.is_imported else context or MAX_WINDOW_TOKENS
        )

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next((p.device for p in self.model.parameters()), torch.device("cpu"))

    # -- how good it is -----------------------------------------------------------------------

    def validation_tokens(self) -> TokenFile:
        """The tokens of the validation text; an imported model has none."""
        return tokenise(self.source().validation, self.tokenizer, None)

    def training_text(self) -> Corpus:
        """The text it learned from; that of a model from elsewhere is not known here."""
        return self.source().train

    def source(self) -> Source:
        """The training, validation and test texts; those of an imported model are not known."""
        if self.is_imported:
            raise DataError(
                f"{self.directory.path} was not trained here: its text is not known, and it has no validation data",
                expected="text to measure it on",
                advice=f"weft evaluate {self.directory.path} book.txt",
            )
        data = self.config.data
        assert isinstance(data, DataConfig)
        return read_source(data)

    def evaluate(self, *data: str, weights: Weights = "float32") -> dict[str, Any]:
        """Its metrics: on the test data of the run if it has any, else on its validation data; or on other data.

        A model that writes: nats per token and bits per byte; with `weights` "bf16" or "int8", as good as it is with
        its maps rounded to that. A classifier: accuracy and other metrics. One that fills in: how often it is right.
        """
        task = self.description
        if weights != "float32" and not task.rounds:
            raise ConfigError(f"weights = {weights!r} for {self.task}", expected="float32")
        return task.evaluate(self, *data, weights=weights)

    # -- what it can do ----------------------------------------------------------------------

    def check_writes(self) -> None:
        """Refuse a model that does not continue a text."""
        if CausalLM not in self.model_config.provides:
            reads = learns(self.model_config.kind, FillsMasks)
            raise UnsupportedError(
                f"{self.directory.path} is a {self.model_config.kind}: it {what_it_does(self.model_config)}",
                expected="a model that continues a text",
                advice="in Python, .model and .tokenizer can be used" if reads else f"what it can do:  {self._use()}",
            )

    def check_reads(self) -> None:
        """Refuse a model that does not read in both directions."""
        if not learns(self.model_config.kind, FillsMasks):
            looks = EncodesImages in self.model_config.provides
            does = what_it_does(self.model_config) if looks else "writes, and does not read in both directions"
            raise UnsupportedError(
                f"{self.directory.path} is a {self.model_config.kind}: it {does}",
                expected=f"a {named(FillsMasks)}, from weft train fill or from Hugging Face",
            )

    def check_translates(self) -> None:
        """Refuse a model that does not write one text from another."""
        if Seq2SeqLM not in self.model_config.provides:
            raise UnsupportedError(
                f"{self.directory.path} is a {self.model_config.kind}: it does not write one text from another",
                expected="one that does, from weft train translate or from Hugging Face",
                advice=f"what it can do:  {self._use()}",
            )

    def _use(self) -> str:
        """The command to try first with it."""
        return find_use(self.model_config)[1].command(self.directory.path)

    def check_looks(self) -> None:
        """Refuse a model that does not look at images."""
        if EncodesImages not in self.model_config.provides:
            raise UnsupportedError(
                f"{self.directory.path} is a {self.model_config.kind}: it does not look at images",
                expected=f"a {named(ClassifiesImages)}, from weft train classify or from Hugging Face",
            )

    def report(self) -> Path:
        """Write the report of the run, `report.html` in its directory, and give its path."""
        make = type(self).reporter
        if make is None:
            raise UnsupportedError("a report without weft.api", advice="open the run by weft.load(…)")
        return make(self.directory.path)

    def export(self, folder: str | Path, to: str | None = None) -> dict[str, Any]:
        """Write it as a folder that Hugging Face's transformers opens; gives the certificate that it is the same.

        n-grams become an ARPA file, and vectors of words a file of word2vec; `to` names a format.
        """
        make = type(self).exporter
        if make is None:
            raise UnsupportedError("an export without weft.api", advice="open the run by weft.load(…)")
        return make(self.directory.path, folder, to)

    def attention(
        self, given: str | Path | np.ndarray, pair: str | None = None, *, target: str | None = None
    ) -> AttentionView:
        """What every layer and head looks at in a text, a text and its pair, or an image: `.maps` with `.weights`,
        labels for rows and columns, and `.rollouts`. A translator writes `target`, or what it finds itself."""
        from weft.tasks.attention_view.view import view_of

        return view_of(self, given, pair=pair, target=target)


def load(path: str | Path) -> Run:
    """Open a run directory or a Hugging Face folder as what its task makes of it: a `TextGenerator`, `TextClassifier` …

    What the config.json does not tell is a plain `Run`, which says what is wrong when it is used.
    """
    if not isinstance(path, str | Path):
        raise DataError(
            f"a {type(path).__name__} to load",
            expected="the path of a run or of a Hugging Face folder",
            advice='such as weft.load("runs/generate-book-1")',
        )
    run = Run(path)
    try:
        made = run.description.opens_as(run.model_config)
    except WeftError:
        return run
    return made(path)
