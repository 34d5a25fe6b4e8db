"""Which token comes next: logits → the tokens that may be chosen → one of them.

The filters act in the order of Hugging Face's: repetition penalty, temperature, top-k, top-p, min-p. Nothing larger
than the tokens in question is sorted, because a sort of 50 000 logits would take as long as half the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from weft.generation.settings import GenerationConfig

FIRST_CANDIDATES = 128  # tokens; mostly they hold all of top-p


@dataclass(frozen=True)
class Candidates:
    """The tokens that may be chosen in each row, likeliest first unless they are all: −∞ is none."""

    logits: Float[Tensor, "R C"]
    tokens: Int[Tensor, "R C"]


def candidates(
    logits: Float[Tensor, "R V"], settings: GenerationConfig, seen: Sequence[Sequence[int]] = ()
) -> Candidates:
    """Apply the penalty for tokens `seen` in each row, temperature (not 0), top-k, top-p and min-p."""
    logits = penalised(logits, seen, settings.repetition_penalty) / (settings.temperature or 1.0)
    vocabulary = logits.shape[-1]
    if settings.top_k is not None and settings.top_k < vocabulary:
        found = Candidates(*logits.topk(settings.top_k))
        if settings.top_p is not None:
            found = _within(found, settings.top_p, found.logits.logsumexp(-1, keepdim=True))
    elif settings.top_p is not None and settings.top_p < 1:
        found = _nucleus(logits, settings.top_p)
    else:
        found = Candidates(logits, torch.arange(vocabulary, device=logits.device).expand_as(logits))
    if settings.min_p is not None:
        least = found.logits.amax(-1, keepdim=True) + np.log(max(settings.min_p, 1e-300))
        found = Candidates(found.logits.masked_fill(found.logits < least, -torch.inf), found.tokens)
    return found


def penalised(logits: Float[Tensor, "R V"], seen: Sequence[Sequence[int]], penalty: float) -> Float[Tensor, "R V"]:
    """Logits of tokens that are in the row already, divided by the penalty if positive, else multiplied."""
    if penalty == 1.0 or not seen:
        return logits
    logits = logits.clone()
    for row, ids in enumerate(seen):
        known = torch.tensor(sorted(set(ids)), device=logits.device, dtype=torch.long)
        values = logits[row, known]
        logits[row, known] = torch.where(values > 0, values / penalty, values * penalty)
    return logits


def _nucleus(logits: Float[Tensor, "R V"], top_p: float) -> Candidates:
    """The likeliest tokens that together have at least `top_p`: look at more until every row has them."""
    whole = logits.logsumexp(-1, keepdim=True)
    size = FIRST_CANDIDATES
    while size < logits.shape[-1]:
        found = Candidates(*logits.topk(size))
        if bool(((found.logits - whole).exp().sum(-1) >= top_p).all()):
            return _within(found, top_p, whole)
        size *= 8
    return _within(Candidates(*logits.sort(descending=True)), top_p, whole)


def _within(found: Candidates, top_p: float, whole: Tensor) -> Candidates:
    """Cut where the likelier tokens already have `top_p`; the likeliest always stays."""
    shares = (found.logits - whole).exp()
    before = shares.cumsum(-1) - shares
    outside = before >= top_p
    outside[:, 0] = False
    return Candidates(found.logits.masked_fill(outside, -torch.inf), found.tokens)


def choose(found: Candidates, uniform: Sequence[float]) -> list[int]:
    """The token at which the summed probabilities pass a number between 0 and 1, one for each row."""
    sums = found.logits.double().softmax(-1).cumsum(-1)
    marks = torch.tensor(uniform, dtype=torch.float64, device=sums.device)[:, None] * sums[:, -1:]
    at = torch.searchsorted(sums, marks, right=True).clamp(max=sums.shape[-1] - 1)
    return [int(token) for token in found.tokens.gather(1, at)[:, 0]]


def next_tokens(
    logits: Float[Tensor, "R V"],
    settings: GenerationConfig,
    seen: Sequence[Sequence[int]],
    random: Sequence[np.random.Generator],
) -> list[int]:
    """One token for each row, by its own random stream, so that no row depends on its company."""
    if settings.temperature == 0:
        return [int(token) for token in penalised(logits, seen, settings.repetition_penalty).argmax(-1)]
    return choose(candidates(logits, settings, seen), [generator.random() for generator in random])
