"""Losses added up over micro-batches and processes: of the whole, and of its parts by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from weft.training.distributed import Ranks

Part = tuple[Any, Any, int]
"""Summed loss, right answers, terms."""


class LossSums:
    """Sums of losses and the number of their terms; `names` of parts are there even if no batch comes."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.total, self.count = 0.0, 0
        self.parts: dict[str, list[float]] = {name: [0.0, 0.0, 0.0] for name in names}

    def add(self, total: float, count: int, parts: Mapping[str, Part]) -> None:
        """One batch; every batch names the same parts, also those of which it has no term."""
        self.total += total
        self.count += count
        for name, part in parts.items():
            before = self.parts.get(name, [0.0, 0.0, 0.0])
            self.parts[name] = [old + float(new) for old, new in zip(before, part, strict=True)]

    def share(self, ranks: Ranks, device: torch.device) -> None:
        """Add those of all processes."""
        names = sorted(self.parts)
        flat = [self.total, float(self.count), *(value for name in names for value in self.parts[name])]
        sums = torch.tensor(flat, dtype=torch.float64, device=device)
        ranks.sum([sums])
        self.total, self.count = float(sums[0]), int(sums[1])
        self.parts = {name: sums[2 + 3 * n : 5 + 3 * n].tolist() for n, name in enumerate(names)}

    def means(self) -> dict[str, float]:
        """`NAME_loss` and `NAME_accuracy` of each part that had terms."""
        found: dict[str, float] = {}
        for name, (total, right, count) in self.parts.items():
            if count:
                plain = name.replace("-", "_")
                found |= {f"{plain}_loss": total / count, f"{plain}_accuracy": right / count}
        return found
