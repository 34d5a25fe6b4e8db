"""The few likeliest tokens of many rows, without a sort or a copy of what may be a hundred megabytes of logits."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

BLOCK_TOKENS = 64  # tokens whose maximum is looked at first
LOGITS_PER_PIECE = 1 << 18  # logits whose exponentials are in memory at a time
INFINITE_LOGIT = 1e30  # replaces a logit of +∞: large enough for all the probability, and it can be divided


def likeliest(
    logits: Float[Tensor, "R V"], count: int, suppress: Sequence[int] = ()
) -> tuple[Float[Tensor, "R C"], Int[Tensor, "R C"]]:
    """Log-probabilities and ids of at least the `count` likeliest tokens (of all, if there are fewer).

    Those in `suppress` get −∞; what they would have had is not given to the others.
    """
    logits, totals = with_totals(logits)
    values, tokens = largest(logits, min(count + len(suppress), logits.shape[1]))
    values = values - totals
    if suppress:
        values = values.masked_fill(torch.isin(tokens, tokens.new_tensor(list(suppress))), -torch.inf)
    return values, tokens


def with_totals(logits: Float[Tensor, "R V"]) -> tuple[Float[Tensor, "R V"], Float[Tensor, "R 1"]]:
    """Logits in at least float32, and what to subtract for log-probabilities.

    NaN counts as impossible, and +∞ as certain. Where nothing is possible, every log-probability is −∞.
    """
    logits = logits if logits.dtype == torch.float64 else logits.float()
    totals = _log_sum_exp(logits)
    if not bool(totals.isfinite().all()):
        logits = logits.nan_to_num(nan=-torch.inf, posinf=INFINITE_LOGIT, neginf=-torch.inf)
        totals = _log_sum_exp(logits)
        totals = totals.masked_fill(totals == -torch.inf, 0.0)
    return logits, totals


def _log_sum_exp(logits: Float[Tensor, "R V"]) -> Float[Tensor, "R 1"]:
    """By a few rows at a time: fresh memory for all exponentials would cost more than to compute them."""
    rows = max(1, LOGITS_PER_PIECE // logits.shape[1])
    return torch.cat([logits[at : at + rows].logsumexp(-1, keepdim=True) for at in range(0, len(logits), rows)])


def largest(values: Float[Tensor, "R V"], count: int) -> tuple[Float[Tensor, "R C"], Int[Tensor, "R C"]]:
    """`values.topk(count)`, several times as fast for long rows.

    The largest values are in the blocks with the largest maxima, so that only these are looked into.
    """
    blocks = values.shape[1] // BLOCK_TOKENS
    if blocks < 4 * count:
        return values.topk(count)
    whole = blocks * BLOCK_TOKENS
    maxima = values[:, :whole].reshape(len(values), blocks, BLOCK_TOKENS).amax(-1)
    inside = torch.arange(BLOCK_TOKENS, device=values.device)
    places = (maxima.topk(count, sorted=False).indices[:, :, None] * BLOCK_TOKENS + inside).flatten(1)
    rest = torch.arange(whole, values.shape[1], device=values.device).expand(len(values), -1)
    places = torch.cat([places, rest], 1)
    found, at = values.gather(1, places).topk(count)
    return found, places.gather(1, at)
