"""What a search needs: something that writes, the settings, and what a found text is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Protocol

from jaxtyping import Float, Int
from torch import Tensor

from weft.config import Between, Config, Count, Size
from weft.errors import ConfigError


class Decoding(Protocol):
    """Texts in the making, side by side: N sources, each with the same number of rows, at first one.

    It holds the model and all it has read. Sources stay in their order, and the rows of a source side by side.
    """

    def step(self, tokens: Int[Tensor, "R"]) -> Float[Tensor, "R V"]:
        """Read one more token in every row; logits over the next."""
        ...

    def select(self, rows: Int[Tensor, "R2"]) -> None:
        """Keep these rows, in this order; one may be taken several times. Every source keeps some."""
        ...

    def keep(self, sources: Int[Tensor, "M"]) -> None:
        """Keep only these sources, with all their rows; both are counted anew."""
        ...


class SearchConfig(Config):
    """How a text is searched for, and what it is worth.

    beams         how many texts of a source are in the making at a time
    alpha         a text is worth its log-probability / length^alpha, where the end counts as a token; 0 is the
                  log-probability alone, and more prefers longer texts
    best          how many texts of each source are wanted
    end           the token that ends a text
    suppress      tokens that are never written (padding, say)
    end_at_limit  whether the last token that the limit allows is the end, whatever the model expects (Marian)
    """

    beams: Size = 4
    alpha: Annotated[float, Between(0, 4)] = 1.0
    best: Size = 1
    end: Count
    suppress: tuple[Count, ...] = ()
    end_at_limit: bool = False

    def check(self) -> None:
        if self.best > self.beams:
            raise ConfigError(f"the best {self.best} of {self.beams} beams", expected=f"at least {self.best} beams")
        if self.end in self.suppress:
            raise ConfigError(f"the end, token {self.end}, is suppressed", advice="no text could end")


@dataclass(frozen=True)
class Hypothesis:
    """One text, without start and end; `ended` is whether the model ended it, and not its limit."""

    tokens: list[int]
    score: float
    log_probability: float
    ended: bool
