"""Writing the contents of the gaps of a text, gap by gap, in T5's form: `<0> a day <1> ran <2> end`."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from weft.generation.sources import SourceDecoding
from weft.models import EncoderDecoder


class GapDecoding(SourceDecoding):
    """Sources with gaps, `counts` of them in each; a text has the content of every gap in turn, and ends.

    What no such text has is impossible, so that probabilities are those among what has: the first sentinel comes
    first, each is followed by something, and then by the next; behind the last gap comes one sentinel more, or the end
    at once, as T5's own code has it. `never` are tokens that are no text.
    """

    def __init__(
        self,
        model: EncoderDecoder,
        sources: Sequence[Sequence[int]],
        counts: Sequence[int],
        *,
        sentinels: Sequence[int],
        end: int,
        never: Sequence[int] = (),
    ) -> None:
        super().__init__(model, sources)
        self.end, self.sentinels = end, torch.tensor(sentinels, device=self.device)
        self.counts = torch.tensor(counts, device=self.device)
        self.gaps = torch.full_like(self.counts, -1)  # in which gap each row is; before the first: -1
        size = model.head.out_features
        self.numbers = torch.full((size,), -1, device=self.device)
        self.numbers[self.sentinels] = torch.arange(len(sentinels), device=self.device)
        self.no_text = self.numbers >= 0
        self.no_text[torch.tensor([end, *never], device=self.device)] = True

    def step(self, tokens: Int[Tensor, "R"]) -> Float[Tensor, "R V"]:
        logits, numbers = super().step(tokens), self.numbers[tokens]
        opened = numbers >= 0
        self.gaps = torch.where(opened, numbers, self.gaps)
        inside = (self.gaps >= 0) & (self.gaps < self.counts)
        said = inside & ~opened
        found = logits.masked_fill(self.no_text | ~inside[:, None], -torch.inf)
        following = self.sentinels[(self.gaps + 1).clamp(max=len(self.sentinels) - 1)][:, None]
        goes_on = (said | (self.gaps < 0))[:, None]
        found = found.scatter(1, following, logits.gather(1, following).masked_fill(~goes_on, -torch.inf))
        may_end = (self.gaps >= self.counts) | (said & (self.gaps == self.counts - 1))
        found[:, self.end] = logits[:, self.end].masked_fill(~may_end, -torch.inf)
        return found

    def select(self, rows: Int[Tensor, "R2"]) -> None:
        super().select(rows)
        self.gaps, self.counts = self.gaps[rows], self.counts[rows]

    def keep(self, sources: Int[Tensor, "M"]) -> None:
        self.gaps, self.counts = (part.view(self.sources, -1)[sources].flatten() for part in (self.gaps, self.counts))
        super().keep(sources)
