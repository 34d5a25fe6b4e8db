"""Models that are learned block by block of text, each by one of several threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class BlockLosses:
    """The result of blocks: the summed loss over all examples, their number, and how many words were read."""

    loss: float
    examples: int
    words: int


class LearnsBlocks(Protocol):
    """Learns numbered blocks of text into one model."""

    def learn(self, numbers: Sequence[int], rate: float) -> BlockLosses:
        """All of these blocks; a learning rate of 0 only measures."""
        ...
