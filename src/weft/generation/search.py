"""Searching for a text: the likeliest by beams, the likeliest token by token, or one by chance.

Many sources are written for side by side. One that is done leaves, so that no work is done for it, and none depends
on its company. What writes is a `Decoding`: a model with what it has read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from weft.errors import ConfigError, ShapeError, UnsupportedError
from weft.generation.beams import Beams, FinishedHypotheses
from weft.generation.decoding import Decoding, Hypothesis, SearchConfig
from weft.generation.likeliest import likeliest, with_totals
from weft.generation.sampling import next_tokens
from weft.generation.settings import GenerationConfig

__all__ = ["Decoding", "Hypothesis", "SearchConfig", "beam_search", "greedy", "sample"]


def beam_search(
    decoding: Decoding, starts: Int[Tensor, "N"], settings: SearchConfig, limits: Sequence[int]
) -> list[list[Hypothesis]]:
    """For each source up to `best` texts, best first, of at most its limit of tokens (the end is one of them).

    In each step every text in the making is continued by every token, and the best 2·beams continuations are looked
    at: those of the first half that end are found, and the best `beams` that do not end are continued. A source is
    done when it has found `beams` texts, and the best one in the making is worth no more at its present length than
    the worst of them. For alpha > 0 this is only a rule of thumb, as a longer text could still win; it is Hugging
    Face's with `early_stopping=False`, and so are the texts.

    If a model leaves no token to continue with (NaN or −∞ for all tokens), what was written so far is returned.
    """
    sources = [FinishedHypotheses(limit) for limit in _checked(limits, starts)]
    with torch.inference_mode():
        beams, tokens = Beams(decoding, sources, starts, settings), starts
        while beams.going:
            tokens = beams.go_on(decoding.step(tokens))
    return [source.found[: settings.best] for source in sources]


def greedy(
    decoding: Decoding, starts: Int[Tensor, "N"], settings: SearchConfig, limits: Sequence[int]
) -> list[Hypothesis]:
    """The likeliest token at each step: what `beam_search` finds with one beam, for less work."""

    def pick(logits: Float[Tensor, "R V"], _: Sequence[_Text]) -> tuple[list[int], list[float]]:
        gains, tokens = likeliest(logits, 1, settings.suppress)
        best = gains.max(1, keepdim=True)
        return tokens.gather(1, best.indices)[:, 0].tolist(), best.values[:, 0].tolist()

    pairs = zip(starts.tolist(), _checked(limits, starts), strict=True)
    sources = [[_Text(start, limit, [])] for start, limit in pairs]
    _write(decoding, starts, sources, settings, pick)
    return [text.hypothesis(settings) for (text,) in sources]


def sample(
    decoding: Decoding,
    starts: Int[Tensor, "N"],
    settings: SearchConfig,
    chance: GenerationConfig,
    limits: Sequence[int],
) -> list[list[Hypothesis]]:
    """`chance.samples` texts for each source, in the order they were drawn; `limits` say how long, not `chance`.

    Temperature and filters choose the tokens; scores are the model's own. Sample i of a seed is the same text alone
    or in company.
    """
    if chance.stop or chance.alternatives is not None:
        raise UnsupportedError("`stop` or `alternatives` in a search for tokens", expected="neither")

    def pick(logits: Float[Tensor, "R V"], texts: Sequence[_Text]) -> tuple[list[int], list[float]]:
        logits, totals = with_totals(logits)
        banned = [token for token in settings.suppress if token < logits.shape[1]]
        logits = logits.index_fill(1, torch.tensor(banned, device=logits.device), -torch.inf) if banned else logits
        nothing = logits.amax(1, keepdim=True) == -torch.inf
        seen = [[text.start, *text.tokens] for text in texts] if chance.repetition_penalty != 1 else []
        random = [text.random for text in texts]
        tokens = next_tokens(logits.masked_fill(nothing, 0.0), chance, seen, random)
        gains = logits.gather(1, torch.tensor(tokens, device=logits.device)[:, None]) - totals
        return tokens, gains[:, 0].tolist()

    pairs = zip(starts.tolist(), _checked(limits, starts), strict=True)
    sources = [[_Text(start, limit, [chance.seed, i]) for i in range(chance.samples)] for start, limit in pairs]
    _write(decoding, starts, sources, settings, pick)
    return [[text.hypothesis(settings) for text in source] for source in sources]


class _Text:
    """One text in the making."""

    def __init__(self, start: int, limit: int, seed: list[int]) -> None:
        self.start, self.limit, self.seed = start, limit, seed
        self.tokens: list[int] = []
        self.log_probability, self.length = 0.0, 0  # the length with the end
        self.over = self.ended = False

    @cached_property
    def random(self) -> np.random.Generator:
        """A stream of its own, so that company does not matter."""
        return np.random.default_rng(self.seed)

    def take(self, token: int, gain: float, settings: SearchConfig) -> None:
        """Note the next token and its log-probability; −∞ means that there is none."""
        forced = settings.end_at_limit and self.length + 1 == self.limit
        if self.over or (gain == -torch.inf and not forced):
            self.over = True
            return
        self.length += 1
        if not forced:
            self.log_probability += gain
            self.ended = token == settings.end
            self.tokens += [] if self.ended else [token]
        self.over = self.ended or self.length == self.limit

    def hypothesis(self, settings: SearchConfig) -> Hypothesis:
        score = self.log_probability / max(1, self.length) ** settings.alpha
        return Hypothesis(self.tokens, score, self.log_probability, self.ended)


Pick = Callable[[Tensor, Sequence[_Text]], tuple[list[int], list[float]]]  # next tokens and their log-probabilities


def _write(
    decoding: Decoding, starts: Tensor, sources: Sequence[Sequence[_Text]], settings: SearchConfig, pick: Pick
) -> None:
    """Let the texts of every source (as many of each) grow by one token at a time, until all are over."""
    if not sources:
        return
    going, each = list(sources), len(sources[0])
    with torch.inference_mode():
        logits = decoding.step(starts)
        if each > 1:
            rows = torch.arange(len(sources), device=starts.device).repeat_interleave(each)
            decoding.select(rows)
            logits = logits[rows]
        while True:
            texts = [text for source in going for text in source]
            tokens, gains = pick(logits, texts)
            for text, token, gain in zip(texts, tokens, gains, strict=True):
                text.take(token, gain, settings)
            stay = [n for n, source in enumerate(going) if not all(text.over for text in source)]
            if not stay:
                return
            if len(stay) < len(going):
                decoding.keep(starts.new_tensor(stay))
                going = [going[n] for n in stay]
                tokens = [token for n in stay for token in tokens[each * n : each * (n + 1)]]
            logits = decoding.step(starts.new_tensor(tokens))


def _checked(limits: Sequence[int], starts: Tensor) -> Sequence[int]:
    if starts.dim() != 1 or len(starts) != len(limits):
        raise ShapeError(f"{len(limits)} limits, starts of shape {tuple(starts.shape)}", expected="one for each source")
    if min(limits, default=1) < 1:
        raise ConfigError(f"a text of at most {min(limits)} tokens", expected="1 or more: the end is one of them")
    return limits
