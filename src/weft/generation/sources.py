"""Sources that were read, and the texts that are being written from them, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from weft.models import PairModel
from weft.models.pair_model import padded, select_rows, select_sources


class SourceDecoding:
    """Reads the sources once; then `step` by step each row gets one more token (a `Decoding`).

    Rows of one source lie side by side. They share its memory: its keys and values are computed once and never
    copied, however many beams look at them (unless they are in one table with what is written: `joint`).
    """

    def __init__(self, model: PairModel[Any], sources: Sequence[Sequence[int]], *, room: int = 64) -> None:
        self.model, self.device = model, next(model.parameters()).device
        rows, keep = padded(sources)
        self.memory = model.encode(rows.to(self.device), None if keep is None else keep.to(self.device))
        self.caches = model.new_caches(room)
        self.sources, self.rows = len(sources), len(sources)

    def __repr__(self) -> str:
        return f"SourceDecoding({self.sources} sources, {self.rows} rows)"

    def step(self, tokens: Int[Tensor, "R"]) -> Float[Tensor, "R V"]:
        """Read one more token in every row; logits over the next."""
        states = self.model.states(tokens[:, None], self.memory, caches=self.caches)
        return self.model.logits(states[:, -1])

    def select(self, rows: Int[Tensor, "R2"]) -> None:
        """Keep these rows, in this order; those of a source stay side by side."""
        select_rows(self.caches, rows)
        self.rows = len(rows)

    def keep(self, sources: Int[Tensor, "M"]) -> None:
        """Keep only these sources, with all their rows."""
        each = self.rows // self.sources
        rows = (sources[:, None] * each + torch.arange(each, device=sources.device)).flatten()
        select_rows(self.caches, rows)
        select_sources(self.caches, sources)
        self.memory = self.memory.select(sources)
        self.sources, self.rows = len(sources), len(rows)
