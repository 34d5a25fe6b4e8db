"""What making examples has to know of a tokenizer, and nothing more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from weft.errors import UnsupportedError
from weft.text import Tokenizer
from weft.text.word_edges import WordEdges


@dataclass(frozen=True, eq=False)
class Marks:
    """The ids that stand for no text, and facts about those that do.

    ordinary    which ids are text: only these are hidden, and only these are put in a hidden one's place
    edges       where words begin
    """

    classify: int
    separate: int
    mask: int
    ordinary: NDArray[np.bool_]
    edges: WordEdges

    def __repr__(self) -> str:
        return f"Marks([CLS]={self.classify}, [SEP]={self.separate}, [MASK]={self.mask})"

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Marks:
        special = tokenizer.special
        if special.classify is None or special.separate is None or special.mask is None:
            raise UnsupportedError(
                f"this {tokenizer.kind} tokenizer lacks marks that reading models need",
                expected="one with [CLS], [SEP] and [MASK]",
            )
        ordinary = tokenizer.token_bytes > 0
        return cls(special.classify, special.separate, special.mask, ordinary, WordEdges.of(tokenizer))
