"""The verbs: which data, model, objective and metrics belong together."""

from weft.tasks.generate import GenerateConfig, resume_generate, train_generate
from weft.tasks.run import Run, load

__all__ = ["GenerateConfig", "Run", "load", "resume_generate", "train_generate"]
