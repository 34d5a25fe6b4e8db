"""What can be said about what a run writes: how much of it is copied, and what rounded weights cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.data import TokenFile
from weft.errors import WeftError
from weft.generation import Weights
from weft.tasks.generate.evaluation import evaluate_text
from weft.tasks.generate.text_generator import packed_model
from weft.text import Corpus

if TYPE_CHECKING:
    from weft.tasks.run import Run

ROUNDING_LOSS_TOKENS = 8192  # tokens of validation text on which the loss of rounded weights is measured before writing
MIN_PASSAGE_CHARACTERS = 24  # characters that make a passage; shorter ones are common to many texts


def rounding_loss(run: Run, weights: Weights, tokens: int = ROUNDING_LOSS_TOKENS) -> dict[str, Any] | None:
    """Loss on the beginning of the validation text with float32 weights and with these; None without such text."""
    try:
        validation = run.validation_tokens()
    except WeftError:  # imported, or its text is gone
        return None
    sample = TokenFile(
        validation.ids[:tokens], max(1, validation.bytes * min(tokens, len(validation)) // len(validation))
    )
    before, after = (
        evaluate_text(model, sample, run.context, device=run.device)["validation_loss"]
        for model in (run.model, packed_model(run, weights))
    )
    return {"weights": weights, "tokens": len(sample), "before": before, "after": after, "worse": after / before - 1}


def copied_share(text: str, corpus: Corpus, shortest: int = MIN_PASSAGE_CHARACTERS) -> float:
    """The share of a text's characters that are in passages taken word for word from the corpus.

    A passage counts from twice `shortest` characters on: the corpus is looked at in steps of `shortest`, so that
    a gigabyte takes seconds, and each such step that occurs in the text is followed in both directions.
    """
    places: dict[str, list[int]] = {}
    for at in range(len(text) - shortest + 1):
        places.setdefault(text[at : at + shortest], []).append(at)
    copied = [False] * len(text)
    before = ""
    for piece in corpus.pieces():
        page = before + piece
        for at in range(0, len(page) - shortest + 1, shortest):
            for place in places.get(page[at : at + shortest], ()):
                if not all(copied[place : place + shortest]):
                    _mark(copied, text, place, page, at, shortest)
        before = page[-4 * shortest :]  # a passage may lie across two pieces
    return sum(copied) / max(1, len(text))


def _mark(copied: list[bool], text: str, place: int, page: str, at: int, shortest: int) -> None:
    """Mark the passage around a common stretch, if it is long enough."""
    first, last = 0, shortest
    while place + first > 0 and at + first > 0 and text[place + first - 1] == page[at + first - 1]:
        first -= 1
    while place + last < len(text) and at + last < len(page) and text[place + last] == page[at + last]:
        last += 1
    if last - first >= 2 * shortest:
        copied[place + first : place + last] = [True] * (last - first)
