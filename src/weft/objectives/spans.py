"""Learning to write what is missing in a text (Raffel et al. 2020): how much of it is hidden."""

from __future__ import annotations

import math
from typing import Annotated

from weft.config import Between, Config
from weft.data.spans import Spans


class SpanConfig(Config):
    """How a model that writes learns from raw text.

    share       of the tokens that are hidden
    span        tokens of a span, on average
    anywhere    False: the last token of a text is always hidden, as in T5's own code; True: spans are anywhere
    """

    share: Annotated[float, Between(0, 1, open=True)] = 0.15
    span: Annotated[float, Between(1, math.inf)] = 3.0
    anywhere: bool = False

    @property
    def spans(self) -> Spans:
        return Spans(self.share, self.span, self.anywhere)
