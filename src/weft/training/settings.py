"""The settings of a training run; every number is fixed before the first step."""

from __future__ import annotations

from typing import Literal

from weft.config import Config, Count, Positive, Share, Size
from weft.errors import ConfigError
from weft.training.optimizer import MuonConfig, OptimizerConfig


class TrainingConfig(Config):
    """How long, in what steps, how fast, and what is written when.

    batch              samples in one step, over all processes; cut into micro-batches of at most micro_batch
    warmup, decay      shares of the run in which the learning rate rises and falls
    schedule           how it falls: "linear" to zero over the decay, or as 1/√step after the warm-up, as in the paper
    evaluate_every     steps between evaluations (0: only at the end); likewise checkpoint_every
    keep               checkpoints kept beside the best weights
    patience           evaluations without a better one after which training stops (None: never)
    average            evaluations whose weights are averaged into those that are evaluated and kept (1: none)
    sharded            under torchrun, parameters are divided among the processes (for AdamW)
    precision          of the products; weights and sums stay float32. A plan measures which is faster
    freeze             what does not learn: "embeddings", or a number: those and that many first layers
    minutes            the wall-clock time this run was planned for, if it was
    """

    steps: Size
    batch: Size
    micro_batch: Size | None = None
    optimizer: OptimizerConfig = MuonConfig()
    warmup: Share = 0.02
    decay: Share = 0.6
    schedule: Literal["linear", "inverse-sqrt"] = "linear"
    clip: Positive | None = 1.0
    evaluate_every: Count = 0
    checkpoint_every: Count = 0
    keep: Size = 2
    patience: Size | None = None
    average: Size = 1
    minutes: Positive | None = None
    seed: Count = 0
    threads: Size = 1
    device: str = "cpu"
    sharded: bool = False
    precision: Literal["float32", "bf16"] = "float32"
    freeze: Count | Literal["embeddings"] | None = None

    def check(self) -> None:
        if self.warmup + self.decay > 1:
            raise ConfigError(f"warmup {self.warmup} and decay {self.decay}", expected="at most 1 together")
        if self.schedule == "inverse-sqrt" and not self.warmup:
            raise ConfigError("schedule = inverse-sqrt without a warm-up", expected="training.warmup above 0")
        if self.sharded and self.average > 1:
            raise ConfigError("training.average with training.sharded", expected="one of them")
        if self.sharded and self.optimizer.kind != "adamw":
            raise ConfigError(
                f"training.sharded with the optimizer {self.optimizer.kind}",
                expected="adamw: Muon needs whole matrices",
                advice="--set training.optimizer.kind=adamw",
            )
