"""A trainer without a command: for tests that stop it, change it and look into it."""

from __future__ import annotations

from pathlib import Path

import torch

from fixtures.texts import make_text
from weft.checkpoints import RunDirectory
from weft.data import Windows, tokenise
from weft.models import GPTConfig
from weft.objectives import causal_loss
from weft.tasks.generate.evaluation import evaluate_text
from weft.text import Corpus, TokenizerConfig
from weft.training import Trainer, TrainingConfig


def make_trainer(path: Path, *, steps: int = 30, on_step=None, **changes) -> Trainer:
    """Three epochs of a tiny text: dropout, accumulation, evaluations, saves; `changes` of the training's settings."""
    corpus = Corpus.of_text(make_text(1200))
    tokenizer = TokenizerConfig.from_config("characters").train(corpus.pieces())
    tokens = tokenise(corpus, tokenizer, None)
    config = GPTConfig(vocab_size=tokenizer.vocab_size, max_length=16, width=16, depth=2, dropout=0.1)
    fields = {"evaluate_every": 7, "checkpoint_every": 5, "micro_batch": 4} | changes
    settings = TrainingConfig(steps=steps, batch=6, **fields)
    torch.manual_seed(settings.seed)
    model = config.build()
    windows = Windows(tokens, 16, settings.seed)
    assert steps * 6 >= 2 * windows.per_epoch, "at least into a third epoch"
    path.mkdir(exist_ok=True)
    return Trainer(
        model,
        settings=settings,
        run=RunDirectory(path),
        samples=lambda numbers: torch.from_numpy(windows.batch(numbers)),
        loss=causal_loss,
        evaluate=lambda: evaluate_text(model, tokens, 16, device=torch.device("cpu")),
        on_step=on_step,
    )
