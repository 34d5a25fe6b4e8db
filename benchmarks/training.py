"""Our training step against a plain eager loop with fused AdamW on the same architecture and batch.

python benchmarks/training.py        one JSON line per comparison; ratio > 1: we are faster
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
from weft.models import GPTConfig, preset
from weft.objectives import causal_loss
from weft.training import AdamWConfig, Trainer, TrainingConfig

SIZES = [(4, 128, 4, 64, 12), (6, 384, 6, 256, 8)]  # depth, width, heads, length, batch
VOCABULARY = 65


class Block(nn.Module):
    """A GPT-2 layer, written as plainly as it goes."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        h = self.norm1(x)
        q, k, v = (m(h).view(batch, length, self.heads, -1).transpose(1, 2) for m in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, length, width)
        x = x + self.o(y)
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Peer(nn.Module):
    def __init__(self, depth: int, width: int, heads: int, length: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1]))
        return self.norm(self.blocks(x)) @ self.tokens.weight.t()


def peer_step(
    depth: int, width: int, heads: int, length: int, samples: Callable[[np.ndarray], Tensor], batch: int
) -> Callable[[], None]:
    model = Peer(depth, width, heads, length)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    step = [0]

    def work() -> None:
        windows = samples(np.arange(batch) + step[0] * batch)
        step[0] += 1
        loss = F.cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()

    return work


def main() -> None:
    torch.manual_seed(0)
    text = torch.randint(VOCABULARY, (200_000,)).numpy()
    for depth, width, heads, length, batch in SIZES:
        fields = {**preset("gpt2")[1], "depth": depth, "width": width, "max_length": length, "vocab_size": VOCABULARY}
        fields["attention"] = {"kind": "softmax", "heads": heads}

        def samples(numbers: np.ndarray, length: int = length) -> Tensor:
            starts = (numbers * 7919) % (len(text) - length - 1)
            return torch.from_numpy(text[starts[:, None] + np.arange(length + 1)])

        with tempfile.TemporaryDirectory() as folder:
            trainer = Trainer(
                GPTConfig(**fields).build(),
                settings=TrainingConfig(steps=10**6, batch=batch, optimizer=AdamWConfig()),
                run=RunDirectory(Path(folder)),
                samples=samples,
                loss=causal_loss,
                evaluate=lambda: {"validation_loss": 0.0},
            )
            ours = trainer._step
            compare(
                f"train/gpt2-style/{depth}x{width}x{length}",
                ours,
                peer_step(depth, width, heads, length, samples, batch),
            )


if __name__ == "__main__":
    main()
