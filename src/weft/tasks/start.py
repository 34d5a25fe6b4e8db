"""Training that begins with the weights of another model: a run, an imported one, or a Hugging Face folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor, nn

from weft.errors import ConfigError, WeightsError
from weft.models import ModelConfig
from weft.text import Tokenizer
from weft.training import AdamWConfig

LENGTH = 256  # tokens in a training window, unless the user says otherwise: a stranger's context may be huge
OPTIMIZER = AdamWConfig(learning_rate=3e-4)
WARMUP = 0.1  # gentle with what is there already


@dataclass(frozen=True)
class Start:
    """A model to begin with."""

    path: str
    model: ModelConfig
    tokenizer: Tokenizer
    weights: dict[str, Tensor]

    def build(self, config: ModelConfig) -> nn.Module:
        """A model with these weights; its settings may differ (dropout, attention kind) as far as they fit."""
        try:
            return config.with_weights({name: tensor.clone() for name, tensor in self.weights.items()})
        except WeightsError as error:
            raise WeightsError(
                f"the weights of {self.path} do not fit the settings: {error}",
                advice="leave the sizes of the model as they are",
            ) from None


def read_start(path: str) -> Start:
    """Open a run or a Hugging Face folder to begin from."""
    from weft.tasks.run import load

    if not Path(path).is_dir():
        raise ConfigError(f"--from {path}: there is no such folder", expected="a run or a Hugging Face folder")
    run = load(path)
    run.check_writes()
    weights = {name: p.detach() for name, p in run.model.named_parameters()}
    return Start(path, run.model_config, run.tokenizer, weights)
