"""Writing with a run: its model made fast, its text streamed, and what rounding its weights costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from torch import nn

from weft.data import TokenFile, tokenise
from weft.errors import WeftError
from weft.generation import GenerationConfig, Piece, Weights, is_worth_packing, packed, stream
from weft.tasks.evaluation import evaluate_text
from weft.text import Corpus

if TYPE_CHECKING:
    from weft.tasks.run import Run

MEASURED = 8192  # tokens of held-out text on which the loss of rounded weights is measured before writing
SHORTEST = 24  # characters that make a passage; shorter ones are common to many texts


def model_for(run: Run, weights: Weights = "float32") -> nn.Module:
    """The model of the run with its weights in this form; a small one in float32 stays as it is."""
    if weights == "float32" and not is_worth_packing(run.model):
        return run.model
    return packed(run.model, weights)


def write(
    run: Run, prompts: Sequence[str], settings: GenerationConfig, *, weights: Weights = "float32"
) -> Iterator[Piece]:
    """Pieces of text as they come, for all prompts and samples."""
    yield from stream(model_for(run, weights), run.tokenizer, prompts, settings)


def rounding_loss(run: Run, weights: Weights, tokens: int = MEASURED) -> dict[str, Any] | None:
    """Loss on the beginning of the held-out text with float32 weights and with these; None without such text."""
    try:
        held_out = run.held_out()
    except WeftError:  # imported, or its text is gone
        return None
    sample = TokenFile(held_out.ids[:tokens], max(1, held_out.bytes * min(tokens, len(held_out)) // len(held_out)))
    length = run.context
    before, after = (
        evaluate_text(model, sample, length, device=run.device)["validation_loss"]
        for model in (run.model, packed(run.model, weights))
    )
    return {"weights": weights, "tokens": len(sample), "before": before, "after": after, "worse": after / before - 1}


def copied_share(text: str, corpus: Corpus, shortest: int = SHORTEST) -> float:
    """The share of a text's characters that stand in passages taken word for word from the corpus.

    A passage counts from twice `shortest` characters on: the corpus is looked at in steps of `shortest`, so that
    a gigabyte takes seconds, and each such step that stands in the text is followed in both directions.
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
