"""Writing texts from sources: many at a time, similar ones together, each as if it were alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from weft.generation.search import Hypothesis, SearchConfig, beam_search, greedy, sample
from weft.generation.settings import GenerationConfig
from weft.generation.sources import SourceDecoding
from weft.models import PairModel

MAX_ROWS = 256  # beams that grow side by side
MAX_BATCH_TOKENS = 8192  # of sources with their padding, in one batch


def limit_of(source: int, longest: int) -> int:
    """How many tokens may be written from a source of so many: three times as many and some, as far as they fit."""
    return min(longest, 3 * source + 20)


def write(
    model: PairModel[Any],
    sources: Sequence[Sequence[int]],
    search: SearchConfig,
    *,
    start: int,
    limits: Sequence[int],
    sampling: GenerationConfig | None = None,
) -> list[list[Hypothesis]]:
    """The best texts for each source, in the order given; with `sampling`, texts drawn by its settings."""
    found: list[list[Hypothesis]] = [[] for _ in sources]
    model.eval()
    with torch.inference_mode():
        for places in batches([len(source) for source in sources], search.beams if sampling is None else 1):
            decoding = SourceDecoding(model, [sources[place] for place in places])
            starts = torch.full((len(places),), start, device=decoding.device)
            some = [limits[place] for place in places]
            if sampling is not None:
                texts = sample(decoding, starts, search, sampling, some)
            elif search.beams == 1:
                texts = [[one] for one in greedy(decoding, starts, search, some)]
            else:
                texts = beam_search(decoding, starts, search, some)
            for place, hypotheses in zip(places, texts, strict=True):
                found[place] = hypotheses
    return found


def batches(lengths: Sequence[int], beams: int) -> Iterator[list[int]]:
    """Sources by their numbers, the longest first: what does not fit into memory is known at once."""
    order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
    first = 0
    while first < len(order):
        size = max(1, min(MAX_ROWS // beams, MAX_BATCH_TOKENS // max(1, lengths[order[first]])))
        yield order[first : first + size]
        first += size
