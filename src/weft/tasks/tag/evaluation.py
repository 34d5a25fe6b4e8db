"""How good a model that tags words is, on sentences whose tags are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from weft.tasks.tag.alignment import IGNORED, EncodedWords, Ids, encode_labels
from weft.tasks.tag.metrics import scores_by_type, tag_scores
from weft.tasks.tag.schemes import find_entities, find_scheme, write_iob2
from weft.tasks.tag.tagger import tag_logits


def measured(
    model: nn.Module,
    words: EncodedWords,
    tags: Sequence[Sequence[str]],
    labels: Sequence[str],
    *,
    plain: bool,
    whole: bool = False,
    device: torch.device | None = None,
) -> dict[str, Any]:
    """`validation_loss` in nats for each word, and the scores of the tags; `whole` adds those of each type.

    The loss is left out for a model whose labels follow another scheme than IOB2, which sentences are read in.
    """
    logits = tag_logits(model, words, device)
    told = [[labels[n] for n in row.argmax(1)] for row in logits]
    found: dict[str, Any] = {}
    if find_scheme([labels], "the model") in ("iob2", "plain"):
        found["validation_loss"] = mean_loss(logits, encode_labels(tags, labels))
    elif not plain:
        told = [write_iob2(find_entities(row), len(row)) for row in told]
    found |= tag_scores(tags, told, plain=plain)
    if whole:
        found["classes"] = classes(tags, told, plain=plain)
    return found


def mean_loss(logits: Sequence[NDArray[np.float64]], wanted: Sequence[Ids]) -> float:
    """Cross-entropy over the words whose tags the model knows."""
    rows, ids = np.concatenate(logits), np.concatenate(wanted)
    known = ids != IGNORED
    rows, ids = rows[known], ids[known]
    top = rows.max(1, keepdims=True)
    losses = np.log(np.exp(rows - top).sum(1)) + top[:, 0] - rows[np.arange(len(ids)), ids]
    return float(losses.mean()) if len(ids) else 0.0


def classes(true: Sequence[Sequence[str]], told: Sequence[Sequence[str]], *, plain: bool) -> dict[str, Any]:
    """Precision, recall and F1 of each type or plain tag, and how many examples of it there are."""
    counted = "words" if plain else "entities"
    found = scores_by_type(true, told, plain=plain)
    return {kind: {"examples" if key == counted else key: n for key, n in row.items()} for kind, row in found.items()}
