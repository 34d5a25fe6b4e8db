"""Text to text: each token of a target from those before it and the whole source (teacher forcing).

Label smoothing (Szegedy et al. 2016; in the paper 0.1): a share of what is asked for lies on all tokens alike, so that
the model is never asked to be certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from weft.config import Config, Share, Size
from weft.models import PairModel
from weft.models.pair_model import padded

Tokens = Sequence[int] | NDArray[np.integer]


class TextToTextConfig(Config):
    """How a model learns to write one text from another.

    smoothing      the share of the wanted probability that lies on all tokens alike
    respelling     the share of sub-words that are spelled in smaller pieces while learning (Provilkov et al. 2020)
    batch_tokens   tokens of source and target in one batch, with the padding they need
    """

    smoothing: Share = 0.1
    respelling: Share = 0.1
    batch_tokens: Size = 2048


@dataclass(frozen=True, eq=False)
class PairBatch:
    """Pairs as rows. `written` begins with the start token; `wanted` are the real tokens to predict, in a row,
    at the `places` of the flattened states."""

    source: Int[Tensor, "B S"]
    source_keep: Bool[Tensor, "B S"] | None
    written: Int[Tensor, "B T"]
    wanted: Int[Tensor, "N"]
    places: Int[Tensor, "N"] | None

    @classmethod
    def of(cls, sources: Sequence[Tokens], targets: Sequence[Tokens], *, start: int) -> PairBatch:
        """A batch of pairs, each text with its end token; a target begins with `start`, and its end is only wanted."""
        source, source_keep = padded(sources)
        wanted, keep = padded(targets)
        written = torch.cat([torch.full((len(wanted), 1), start), wanted[:, :-1]], 1)
        if keep is None:
            return cls(source, source_keep, written, wanted.flatten(), None)
        places = keep.flatten().nonzero()[:, 0]
        return cls(source, source_keep, written, wanted.flatten()[places], places)

    def __repr__(self) -> str:
        return f"PairBatch({len(self.source)} pairs, {len(self.wanted)} tokens to predict)"

    def to(self, device: torch.device | str) -> PairBatch:
        """The same on another device."""

        def moved(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.to(device)

        return PairBatch(
            self.source.to(device),
            moved(self.source_keep),
            self.written.to(device),
            self.wanted.to(device),
            moved(self.places),
        )


def wanted_logits(model: PairModel[Any], batch: PairBatch) -> Float[Tensor, "N V"]:
    """Logits where a real token is to be predicted; padding costs nothing here."""
    states = model.states(batch.written, model.encode(batch.source, batch.source_keep)).flatten(0, 1)
    return model.logits(states if batch.places is None else states[batch.places])


class TextToText:
    """The loss of a batch: summed over the tokens to predict, and how many they are."""

    def __init__(self, smoothing: float = 0.0) -> None:
        self.smoothing = smoothing

    def __repr__(self) -> str:
        return f"TextToText(smoothing={self.smoothing})"

    def __call__(self, model: PairModel[Any], batch: PairBatch) -> tuple[Tensor, int]:
        logits = wanted_logits(model, batch)
        loss = F.cross_entropy(logits, batch.wanted, reduction="sum", label_smoothing=self.smoothing)
        return loss, len(batch.wanted)
