"""Model families: one file each, read from top to bottom. A new family is a new file and one line here."""

from weft.models.base import ModelConfig
from weft.models.gpt import GPT, GPTConfig
from weft.models.presets import preset

__all__ = ["GPT", "GPTConfig", "ModelConfig", "preset"]
