"""What attention kinds can recall: pairs spread over a long row, asked for at its beginning.

    python benchmarks/recall.py [STEPS] [KIND…]           32 pairs in 4 096 tokens
    python benchmarks/recall.py many [STEPS] [KIND…]      128 pairs and nothing else: can a sum hold them apart?

Some tokens of a row say "this name has that value", each name once, at random places; the others are filling. Before
it stand 32 names that are asked for, and the model, an encoder of two layers of width 64 without positions, is to say
their values: one of 4, so that guessing gives 0.25. It learns from rows of all lengths up to the longest, drawn anew in
every step, and is tested on rows of the longest. Of many names, each begins as the same vector where it is asked for
and where it has a value; of 32, they begin as strangers. One JSON line for each kind: accuracy, steps, seconds. Nothing
was tuned for any kind.
"""

from __future__ import annotations

import json
import math
import sys
import time
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from weft.blocks import AttentionConfig
from weft.blocks.roles import HEAD, by_name
from weft.models import BERTConfig
from weft.models.base import Model
from weft.training.optimizer import MuonConfig

VALUES, ASKED, WIDTH, NEAR = 4, 32, 64, 32
TOKENS = 16384  # in a step: shorter rows, more of them
KINDS: dict[str, object] = {
    "softmax": "softmax",
    "local": {"kind": "local", "window": NEAR},
    "local+global": {"kind": "union", "of": [{"kind": "local", "window": NEAR}, {"kind": "global", "tokens": ASKED}]},
    "linear": "linear",
    "random-features": {"kind": "random-features", "features": 128},
}


@dataclass(frozen=True)
class Task:
    """So many names, of which 32 are asked for, in rows of at most this length."""

    names: int
    longest: int
    steps: int
    alike: bool

    @property
    def vocabulary(self) -> int:
        """The filling, names that are asked for, and pairs."""
        return 1 + self.names + self.names * VALUES

    def rows(self, length: int, chance: torch.Generator, count: int = 0) -> tuple[Tensor, Tensor]:
        """Tokens, and the values that are right at the first places."""
        count = count or max(1, TOKENS // (ASKED + length))
        order = torch.rand(count, length, generator=chance).argsort(1)[:, : self.names]
        values = torch.randint(VALUES, (count, self.names), generator=chance)
        pairs = 1 + self.names + torch.arange(self.names) * VALUES + values
        row = torch.zeros(count, length, dtype=torch.long).scatter(1, order, pairs)
        asked = torch.rand(count, self.names, generator=chance).argsort(1)[:, :ASKED]
        return torch.cat([1 + asked, row], 1), values.gather(1, asked)

    def length(self, chance: torch.Generator) -> int:
        """Of the rows of a step: from those that hold nothing but pairs to the longest."""
        low, high = math.log(self.names), math.log(self.longest)
        return round(math.exp(low + (high - low) * torch.rand((), generator=chance).item()))


class Reader(Model):
    """An encoder, and what it says of the first tokens."""

    roles = by_name(head=HEAD)

    def __init__(self, vocabulary: int, attention: AttentionConfig) -> None:
        super().__init__()
        config = BERTConfig(vocab_size=vocabulary, max_length=8192, width=WIDTH, depth=2, attention=attention)
        self.encoder = config.override({"position.kind": "none", "qk_norm": False, "head.kind": "none"}).build()
        self.head = nn.Linear(WIDTH, VALUES)

    @torch.no_grad()
    def name(self, vocabulary: int) -> None:
        """A name begins as the same vector where it is asked for and in its pairs, a value in all pairs: what is left
        to learn is to look for the one and to read the other."""
        names = (vocabulary - 1) // (1 + VALUES)
        name, value = torch.randn(names, 1, WIDTH), torch.randn(1, VALUES, WIDTH)
        table = torch.cat([torch.zeros(1, WIDTH), name[:, 0], (name + value).flatten(0, 1)])
        self.encoder.tokens.weight.copy_(table * self.encoder.tokens.weight.std())

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.encoder(tokens)[:, :ASKED])


def learn(task: Task, kind: object) -> dict[str, float]:
    torch.manual_seed(0)
    attention = AttentionConfig.from_config(kind).override({"heads": 1, "bias": False})  # type: ignore[arg-type]
    model = Reader(task.vocabulary, attention)
    if task.alike:
        model.name(task.vocabulary)
    optimizer = MuonConfig(embedding_rate=MuonConfig().head_rate).build(model)
    rates = [group["lr"] for group in optimizer.param_groups]
    chance, begin = torch.Generator().manual_seed(1), time.perf_counter()
    for step in range(task.steps):
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * min(1, (step + 1) / 20, 2 * (1 - step / task.steps))
        tokens, values = task.rows(task.length(chance), chance)
        logits = model(tokens)
        loss = F.cross_entropy(logits.flatten(0, 1), values.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 99:
            right = (logits.argmax(-1) == values).float().mean().item()
            print(f"step {step + 1}  rows of {tokens.shape[1]}  right {right:.3f}", file=sys.stderr, flush=True)
    spent = time.perf_counter() - begin
    chance, right = torch.Generator().manual_seed(2), []
    with torch.inference_mode():
        for _ in range(16):
            tokens, values = task.rows(task.longest, chance, count=4)
            right.append((model(tokens).argmax(-1) == values).float().mean().item())
    return {"accuracy": round(sum(right) / len(right), 4), "steps": task.steps, "seconds": round(spent)}


def main() -> None:
    words = sys.argv[1:]
    many = words[:1] == ["many"]
    words = words[1:] if many else words
    steps = int(words.pop(0)) if words and words[0].isdigit() else 600
    task = Task(128, 128, steps, alike=True) if many else Task(32, 4096, steps, alike=False)
    for name, kind in KINDS.items():
        if not words or name in words:
            print(json.dumps({"name": f"recall-{task.names}/{name}"} | learn(task, kind)), flush=True)


if __name__ == "__main__":
    main()
