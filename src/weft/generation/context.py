"""What a model has read of each row of a batch, and what it expects next.

Past the context length a text slides: the model sees text[start:], where `start` is a multiple of half the context and
the smallest with which the remaining tokens fit. So it sees at least half a context, re-reads only once in half a
context, and what it sees is a function of the number of tokens alone: a text that is continued and one that is given
whole are the same computation.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from weft.errors import DataError
from weft.models import CausalLM


def window_start(count: int, context: int | None) -> int:
    """Where the visible part of a text of `count` tokens begins."""
    if context is None or count <= context:
        return 0
    step = max(1, context // 2)
    return -(-(count - context) // step) * step


class Reading:
    """Rows of tokens that grow; `logits` (R, V) is what the model expects next in each.

    `room` is how many tokens are going to be appended, for tables of the right size.
    """

    logits: Tensor

    def __init__(self, model: CausalLM, rows: Sequence[Sequence[int]], *, device: torch.device, room: int) -> None:
        if not rows or not all(rows):
            raise DataError("a prompt without any token", expected="at least one token to continue")
        self.model, self.device, self.room = model, device, room
        self.rows = [list(row) for row in rows]
        self._read_windows()

    def _read_windows(self) -> None:
        """Read the visible part of every row anew, shorter ones padded on the right."""
        self.starts = [window_start(len(row), self.model.context) for row in self.rows]
        visible = [row[start:] for row, start in zip(self.rows, self.starts, strict=True)]
        lengths = torch.tensor([len(row) for row in visible], device=self.device)
        longest = int(lengths.max())
        tokens = torch.tensor([row + [0] * (longest - len(row)) for row in visible], device=self.device)
        ragged = bool((lengths < longest).any())
        keep = torch.arange(longest, device=self.device) < lengths[:, None] if ragged else None
        self.caches = self.model.new_caches(min(longest + self.room, self.model.context or 2**62))
        self.logits = self.model.next_logits(tokens, keep=keep, caches=self.caches)

    def append(self, tokens: Sequence[int]) -> None:
        """One more token for each row."""
        for row, token in zip(self.rows, tokens, strict=True):
            row.append(token)
        if any(
            window_start(len(row), self.model.context) != start
            for row, start in zip(self.rows, self.starts, strict=True)
        ):
            self._read_windows()
        else:
            column = torch.tensor(tokens, device=self.device)[:, None]
            self.logits = self.model.next_logits(column, caches=self.caches)

    def select(self, rows: Sequence[int]) -> None:
        """Keep these rows; one may be taken several times."""
        if list(rows) == list(range(len(self.rows))):
            return
        index = torch.tensor(rows, device=self.device)
        for cache in self.caches:
            cache.select(index)
        self.logits = self.logits[index]
        self.rows = [list(self.rows[row]) for row in rows]
        self.starts = [self.starts[row] for row in rows]
