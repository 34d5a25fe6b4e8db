"""What every model family has: a config that is picked by the family's name and builds the model."""

from __future__ import annotations

from torch import nn

from weft.config import Choice
from weft.errors import UnsupportedError


class ModelConfig(Choice):
    """Which family: `ModelConfig.menu` lists them, `.build()` makes the model with fresh weights."""

    def build(self) -> nn.Module:
        """The model, freshly initialised from torch's random state."""
        raise UnsupportedError(f"model family {self.kind!r} cannot be built")
