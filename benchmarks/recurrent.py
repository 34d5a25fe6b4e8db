"""Our training step of an LSTM against a plain torch loop: the same layers, optimizer and streams, the state carried.

python benchmarks/recurrent.py        one JSON line per comparison; ratio > 1: we are faster
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from side_by_side import compare
from torch import Tensor, nn

from weft.checkpoints import RunDirectory
from weft.data import ContiguousStreams
from weft.models import LSTMConfig
from weft.objectives import RecurrentLoss, StretchBatch
from weft.training import AdamWConfig, Trainer, TrainingConfig
from weft.training.allocation import keep_freed_memory

SIZES = [(1, 128, 64, 16), (2, 256, 64, 32)]  # depth, width, length, streams
VOCABULARY = 65


class Peer(nn.Module):
    """As a tutorial has it."""

    def __init__(self, depth: int, width: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.lstm = nn.LSTM(width, width, depth, batch_first=True)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens: Tensor, state: tuple[Tensor, Tensor] | None) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        out, state = self.lstm(self.tokens(tokens), state)
        return self.head(out), state


def peer_step(depth: int, width: int, length: int, streams: int, text: np.ndarray) -> Callable[[], None]:
    model = Peer(depth, width)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    rows = torch.from_numpy(text[: len(text) // streams * streams].reshape(streams, -1))
    place, state = 0, None

    def work() -> None:
        nonlocal place, state
        if place + length + 1 > rows.shape[1]:
            place, state = 0, None
        inputs, targets = rows[:, place : place + length], rows[:, place + 1 : place + length + 1]
        place += length
        logits, state = model(inputs, state)
        state = (state[0].detach(), state[1].detach())
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()

    return work


def main() -> None:
    keep_freed_memory()  # as training does; the peer runs in the same process and has it too
    torch.manual_seed(0)
    text = torch.randint(VOCABULARY, (200_000,)).numpy()
    for number, (depth, width, length, count) in enumerate(SIZES):
        streams = ContiguousStreams(text, length, count, seed=0)

        def samples(numbers: np.ndarray, streams: ContiguousStreams = streams) -> StretchBatch:
            return StretchBatch.of(streams.batch(numbers), streams.count)

        with tempfile.TemporaryDirectory() as folder:
            trainer = Trainer(
                LSTMConfig(vocab_size=VOCABULARY, depth=depth, width=width).build(),
                settings=TrainingConfig(steps=10**6, batch=count, optimizer=AdamWConfig()),
                run=RunDirectory(Path(folder)),
                samples=samples,
                loss=RecurrentLoss(count),
                evaluate=lambda: {"validation_loss": 0.0},
            )
            name = "train/lstm/torch" if number == 0 else f"train/lstm/{depth}x{width}x{length}"
            peer = peer_step(depth, width, length, count, text)
            compare(name, trainer._step, peer, rounds=21, units=length * count)  # a step is short: many rounds


if __name__ == "__main__":
    main()
