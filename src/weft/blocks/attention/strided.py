"""Strided attention: each position sees the last `stride` ones, and every `stride`-th of all before.

Child et al. 2019, "Generating Long Sequences with Sparse Transformers", both of its halves in one core. With a stride
of √N a query sees about 2·√N keys, and any two positions are two layers apart.
"""

from __future__ import annotations

from typing import ClassVar

from weft.blocks.attention.dilated import Dilated
from weft.blocks.attention.local import Local
from weft.blocks.attention.pattern import PatternConfig, Union
from weft.config import Size


class StridedConfig(PatternConfig, kind="strided"):
    """The nearest `stride` positions, and every `stride`-th one however far."""

    description = "Each position sees the last `stride` ones, and every `stride`-th of all before"
    cost = "N·(2·stride + N/stride) pairs; N·3·√N with a stride of √N"
    small_fields: ClassVar = {"stride": 5}

    stride: Size = 64

    def pattern(self) -> Union:
        return Union((Local(self.stride), Dilated(self.stride)))
