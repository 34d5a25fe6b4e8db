"""The verbs: which data, model, objective and metrics belong together."""

from weft.tasks.generate import GenerateConfig, Request, resume_generate, train_generate
from weft.tasks.run import Run, load
from weft.tasks.training import train

__all__ = ["GenerateConfig", "Request", "Run", "load", "resume_generate", "train", "train_generate"]
