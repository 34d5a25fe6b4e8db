"""Training: settings, schedule, optimizers, and the loop that can stop and resume at any step."""

from weft.training.distributed import ALONE, Ranks, ranks_from_environment
from weft.training.optimizer import AdamWConfig, Muon, MuonConfig, OptimizerConfig, SGDConfig, orthogonalise
from weft.training.schedule import Schedule
from weft.training.settings import TrainingConfig
from weft.training.trainer import Outcome, Trainer

__all__ = [
    "ALONE",
    "AdamWConfig",
    "Muon",
    "MuonConfig",
    "OptimizerConfig",
    "Outcome",
    "Ranks",
    "SGDConfig",
    "Schedule",
    "Trainer",
    "TrainingConfig",
    "orthogonalise",
    "ranks_from_environment",
]
