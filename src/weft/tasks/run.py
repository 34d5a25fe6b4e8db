"""A trained run, opened: its settings, tokenizer and model."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import torch
from torch import nn

from weft.checkpoints import RunDirectory
from weft.data import TokenFile, tokenise
from weft.errors import DataError
from weft.models import GPTConfig
from weft.tasks.evaluation import evaluate_text
from weft.tasks.generate import GenerateConfig, check_model
from weft.tasks.sources import DataConfig, read_source
from weft.text import Tokenizer


class Run:
    """`weft.load(DIR)`: everything is read when it is first used."""

    def __init__(self, path: str | Path) -> None:
        self.directory = RunDirectory.open(path)

    def __repr__(self) -> str:
        return f"Run({str(self.directory.path)!r})"

    @functools.cached_property
    def config(self) -> GenerateConfig:
        raw = self.directory.read_config()
        if raw.pop("task", None) != "generate":
            raise DataError(f"{self.directory.path} is a run of a task this version does not know")
        return GenerateConfig.from_dict(raw)

    @functools.cached_property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer.load(self.directory.tokenizer_file)

    @functools.cached_property
    def model(self) -> nn.Module:
        """The model with its best weights, ready for use."""
        if not self.directory.model_file.exists():
            raise DataError(f"{self.directory.path} has no weights yet", advice=f"weft resume {self.directory.path}")
        check_model(self.config.model, self.tokenizer, str(self.directory.config_file))
        model = self.config.model.build()
        state = self.directory.read_model()
        missing, unexpected = model.load_state_dict(state, strict=False)
        tied = {
            name for name, p in model.state_dict(keep_vars=True).items() if name not in dict(model.named_parameters())
        }
        if unexpected or set(missing) - tied:
            raise DataError(
                f"{self.directory.model_file} does not fit config.json", expected="the tensors of its model"
            )
        return model.eval()

    def evaluate(self, *data: str) -> dict[str, Any]:
        """Nats per token and bits per byte on the held-out text of the run, or on other texts."""
        config = self.config
        corpus = read_source(DataConfig(train=data)).train if data else read_source(config.data).validation
        if data:
            corpus = type(corpus)(corpus.documents)  # all of it, nothing held out
        tokens: TokenFile = tokenise(corpus, self.tokenizer, None)
        assert isinstance(config.model, GPTConfig)
        metrics = evaluate_text(self.model, tokens, config.model.max_length, device=torch.device("cpu"))
        return {"loss": metrics["validation_loss"], "bits_per_byte": metrics["bits_per_byte"], "tokens": len(tokens)}


def load(path: str | Path) -> Run:
    """Open a run directory."""
    return Run(path)
