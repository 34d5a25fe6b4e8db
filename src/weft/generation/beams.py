"""The hypotheses of a beam search: which are continued, which are finished, and when the search ends."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from weft.generation.decoding import Decoding, Hypothesis, SearchConfig
from weft.generation.likeliest import likeliest


@dataclass
class FinishedHypotheses:
    """What has been found for one source, best first."""

    limit: int
    found: list[Hypothesis] = field(default_factory=list)

    def add(self, hypothesis: Hypothesis, beams: int) -> None:
        """Keep it if it is one of the best `beams`."""
        insort(self.found, hypothesis, key=lambda known: -known.score)  # of equals, the older one is first
        del self.found[beams:]


@dataclass
class Continuations:
    """Texts with one token more, best first: log-probability, the text that is continued, the token."""

    scores: Float[Tensor, "M C"]
    parents: Int[Tensor, "M C"]
    tokens: Int[Tensor, "M C"]
    over: Bool[Tensor, "M C"]  # whether the token is the end, or the last one allowed


class Beams:
    """The texts in the making of the sources that are not done (M of them), best first."""

    scores: Float[Tensor, "M B"]  # log-probabilities; −∞ is none
    tokens: Int[Tensor, "M B length"]

    def __init__(
        self, decoding: Decoding, sources: Sequence[FinishedHypotheses], starts: Tensor, settings: SearchConfig
    ) -> None:
        self.decoding, self.going, self.settings = decoding, list(sources), settings
        self.scores = starts.new_zeros(len(starts), 1, dtype=torch.float32)
        self.tokens = starts.new_zeros(len(starts), 1, 0)

    def go_on(self, logits: Float[Tensor, "R V"]) -> Int[Tensor, "R2"]:
        """Choose among all continuations; returns the token to be read next in each row."""
        divisor = (self.tokens.shape[2] + 1) ** self.settings.alpha
        best = self._continuations(logits)
        self._note(best, divisor)
        running = best.scores.masked_fill(best.over, -torch.inf)
        scores, chosen = running.topk(min(self.settings.beams, running.shape[1]))
        stay = [n for n, score in enumerate((scores[:, 0] / divisor).tolist()) if not self._is_done(n, score)]
        parents, new = best.parents.gather(1, chosen), best.tokens.gather(1, chosen)
        if len(stay) < len(self.going):
            sources = new.new_tensor(stay)
            scores, parents, new, self.tokens = (part[sources] for part in (scores, parents, new, self.tokens))
            self.going = [self.going[n] for n in stay]
            if stay:
                self.decoding.keep(sources)
        if stay:
            self._take(parents)
            self.scores, self.tokens = scores, torch.cat([self.tokens, new[:, :, None]], 2)
        return new.flatten()

    def _continuations(self, logits: Float[Tensor, "R V"]) -> Continuations:
        """The best 2·beams of each source: as each text has one end, half of them or more do not end."""
        count, settings = len(self.going), self.settings
        gains, tokens = likeliest(logits, 2 * settings.beams, settings.suppress)
        scores = (self.scores.view(-1, 1) + gains).view(count, -1)
        scores, places = scores.topk(min(2 * settings.beams, scores.shape[1]))
        parents, tokens = places // gains.shape[1], tokens.view(count, -1).gather(1, places)
        length = self.tokens.shape[2] + 1
        cut = torch.tensor([source.limit == length for source in self.going], device=tokens.device)
        if settings.end_at_limit:
            beams = self.scores.shape[1]
            scores[cut] = -torch.inf
            scores[cut, :beams] = self.scores[cut].to(scores.dtype)
            parents[cut, :beams] = torch.arange(beams, device=tokens.device)
            tokens[cut] = settings.end
        return Continuations(scores, parents, tokens, cut[:, None] | (tokens == settings.end))

    def _note(self, best: Continuations, divisor: float) -> None:
        """Keep the texts that are over, if they are among the best `beams` continuations."""
        settings = self.settings
        possible = best.over & (best.scores > -torch.inf)
        sources, places = possible[:, : settings.beams].nonzero(as_tuple=True)
        logs = best.scores[sources, places]
        rows = zip(
            sources.tolist(),
            self.tokens[sources, best.parents[sources, places]].tolist(),
            best.tokens[sources, places].tolist(),
            (logs / divisor).tolist(),
            logs.tolist(),
            strict=True,
        )
        for n, text, token, score, log_probability in rows:
            source, is_end = self.going[n], token == settings.end
            forced = settings.end_at_limit and len(text) + 1 == source.limit
            tokens = text if is_end else [*text, token]
            source.add(Hypothesis(tokens, score, log_probability, is_end and not forced), settings.beams)

    def _is_done(self, n: int, score: float) -> bool:
        """Whether source n has enough; `score` is what its best text in the making is worth now, −∞ if there is none.

        A source without a finished hypothesis and without a possible next token keeps what was written before.
        """
        source, beams = self.going[n], self.settings.beams
        if score == -torch.inf and not source.found:
            divisor = max(1, self.tokens.shape[2]) ** self.settings.alpha
            for log_probability, text in zip(self.scores[n].tolist(), self.tokens[n].tolist(), strict=True):
                if log_probability > -torch.inf:
                    source.add(Hypothesis(text, log_probability / divisor, log_probability, ended=False), beams)
        return score == -torch.inf or (len(source.found) == beams and score <= source.found[-1].score)

    def _take(self, parents: Int[Tensor, "M B"]) -> None:
        """Go on from these texts of each source; nothing is moved if all stay in their places."""
        count, beams = self.tokens.shape[:2]
        rows = (parents + beams * torch.arange(count, device=parents.device)[:, None]).flatten()
        if len(rows) != count * beams or not torch.equal(rows, torch.arange(len(rows), device=rows.device)):
            self.decoding.select(rows)
            self.tokens = self.tokens.flatten(0, 1)[rows].view(*parents.shape, self.tokens.shape[2])
