"""Next-token prediction in stretches of a text that goes on: truncated back-propagation through time.

Each stream begins with the state that its stretch before left, so what was read long ago still counts; but no gradient
goes back beyond the stretch (Williams & Peng 1990, "An Efficient Gradient-Based Algorithm for On-Line Training of
Recurrent Network Trajectories").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from weft.blocks.recurrent import StateCache
from weft.data.streams import StreamSegments
from weft.errors import DataError
from weft.models import CarriesState


@dataclass(frozen=True, eq=False)
class StretchBatch:
    """`data.streams.StreamSegments` as tensors.

    streams  which stream each row belongs to; None: row n to stream n, and there is a row for each
    fresh  the rows before which nothing comes; None: none of them
    """

    windows: Tensor
    streams: Tensor | None = None
    fresh: Tensor | None = None

    @classmethod
    def of(cls, stretches: StreamSegments, streams: int) -> StretchBatch:
        """What is read from so many streams."""
        windows, places, fresh = stretches
        whole = len(places) == streams and bool((places == np.arange(streams)).all())
        return cls(
            torch.from_numpy(windows),
            None if whole else torch.from_numpy(places),
            torch.from_numpy(fresh) if fresh.any() else None,
        )

    def to(self, device: torch.device | str) -> StretchBatch:
        """The same on another device."""
        parts = (self.windows, self.streams, self.fresh)
        windows, streams, fresh = (None if part is None else part.to(device) for part in parts)
        assert windows is not None
        return StretchBatch(windows, streams, fresh)


class RecurrentLoss:
    """Summed cross-entropy in nats, and the number of predicted tokens. It holds the state of each of `streams`
    streams: what training hands from step to step besides weights, and so a part of every checkpoint."""

    def __init__(self, streams: int) -> None:
        self.streams = streams
        self.states: list[list[Tensor]] = []  # of each layer: (streams, D) each; empty before the first step

    def __repr__(self) -> str:
        return f"RecurrentLoss({self.streams} streams)"

    def __call__(self, model: CarriesState, batch: StretchBatch) -> tuple[Tensor, int]:
        caches = model.new_states()
        for cache, tables in zip(caches, self.states, strict=False):
            cache.begin(tuple(_before(table, batch) for table in tables))
        inputs, targets = batch.windows[:, :-1], batch.windows[:, 1:]
        logits = model(inputs, caches=caches)
        self._keep(caches, batch.streams)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum"), targets.numel()

    def _keep(self, caches: Sequence[StateCache], streams: Tensor | None) -> None:
        """Write down what these streams left, without the way it came about. Tables are never written into where all
        streams were read: backward still needs what stood there."""
        found = [[part.detach() for part in cache.state or ()] for cache in caches]
        if streams is None:
            self.states = [[_widened(part) for part in parts] for parts in found]
            return
        if not self.states:
            self.states = [[_table(part, self.streams) for part in parts] for parts in found]
        for tables, parts in zip(self.states, found, strict=True):
            for table, part in zip(tables, parts, strict=True):
                table[streams] = part.to(table.dtype)

    # -- for checkpoints ----------------------------------------------------------------------

    def tensors(self) -> dict[str, Tensor]:
        """By layer and part: `0/0`, `0/1` …"""
        return {f"{layer}/{n}": t for layer, tables in enumerate(self.states) for n, t in enumerate(tables)}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on with these."""
        if any(len(table) != self.streams for table in tensors.values()):
            raise DataError("the carried states of the checkpoint do not fit", expected=f"{self.streams} streams")
        states: dict[int, list[Tensor]] = {}
        for name in sorted(tensors):
            states.setdefault(int(name.partition("/")[0]), []).append(tensors[name].clone())
        self.states = [states[layer] for layer in sorted(states)]


def _before(table: Tensor, batch: StretchBatch) -> Tensor:
    """The states with which the rows of a batch begin."""
    rows = table if batch.streams is None else table[batch.streams]
    return rows if batch.fresh is None else rows.masked_fill(batch.fresh[:, None], 0)


def _widened(part: Tensor) -> Tensor:
    """In float32 at least."""
    return part if part.dtype == torch.float32 else part.to(torch.promote_types(part.dtype, torch.float32))


def _table(part: Tensor, streams: int) -> Tensor:
    """Room for the states of all streams."""
    return _widened(part.new_zeros(streams, part.shape[1]))
