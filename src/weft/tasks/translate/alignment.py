"""Which words of a source each word of a text looked at while it was written: the weights in use."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from weft.analysis import capture
from weft.errors import UnsupportedError
from weft.models import PairModel
from weft.tasks.translate.encoded_pairs import Ids, TokenizerPair
from weft.text import Tokenizer
from weft.text.word_edges import WordEdges

Looked = NDArray[np.float64]


@dataclass(frozen=True)
class Link:
    """A word that was written, the word of the source that it looked at most, and the share of its look.

    `looks` has every word of the source with its share, in their order; the end-of-text token has the remaining share.
    """

    word: str
    source: str
    weight: float
    looks: tuple[tuple[str, float], ...]

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        return {"word": self.word, "source": self.source, "weight": self.weight, "looks": self.looks}


def compute_cross_attention(model: PairModel[Any], source: Ids, tokens: Ids, start: int) -> Looked:
    """(tokens, source): where each token was looked for in the source, as the mean over the heads of the last two
    thirds of the layers; the first look about at random. Rows of a joint table are scaled to the source's share."""
    written = np.concatenate([[start], tokens[:-1]])
    check_looks(model)
    device = next(model.parameters()).device
    with torch.inference_mode(), capture(model, model.looks or "") as maps:
        memory = model.encode(torch.from_numpy(source)[None].to(device))
        model.states(torch.from_numpy(written)[None].to(device), memory)
    ordered = sorted(maps, key=lambda name: int(name.split(".")[2]))
    chosen = ordered[len(ordered) // 3 :]
    weights = torch.stack([maps[name].weights[0].mean(0) for name in chosen]).mean(0)
    looks = weights[:, : len(source)].double().cpu().numpy()
    return cast(Looked, looks / np.maximum(looks.sum(1, keepdims=True), 1e-12))


def check_looks(model: PairModel[Any]) -> None:
    """Refuse a model in which nothing looks at the source while a text is written."""
    if model.looks is None:
        kind = type(model).__name__.lower()
        raise UnsupportedError(
            f"what each word looked at, in a {kind}: nothing looks at the source, it knows one vector of all of it",
            expected="a model with attention: bahdanau, transformer or t5",
        )


def pieces_of(tokenizer: Tokenizer, text: str, ids: Ids) -> list[bytes]:
    """The text of each token, which may be a part of a letter; of an imported tokenizer, the span of the text."""
    if tokenizer.kind in ("other", "wordpiece"):
        return [piece.encode() for piece in tokenizer.pieces(text)[: len(ids)]]
    return [tokenizer.decode_bytes([number]) for number in ids]


def words_of(begins: NDArray[np.bool_], pieces: Sequence[bytes]) -> tuple[list[str], NDArray[np.int64]]:
    """The words that pieces make, and which word each piece belongs to."""
    whose = np.cumsum(begins) - 1
    words = [b""] * (int(whose[-1]) + 1 if len(whose) else 0)
    for word, piece in zip(whose, pieces, strict=True):
        words[word] += piece
    return [word.decode(errors="replace").strip() for word in words], whose


def aligned(tokenizers: TokenizerPair, text: str, tokens: Ids, weights: Looked) -> Iterator[Link]:
    """The looks of tokens as looks of words: over the tokens of a word the mean, over those of the source the sum."""
    ids = np.asarray(tokenizers.source.encode(text), dtype=np.int64)[: weights.shape[1] - 1]
    first = np.zeros(1, dtype=np.int64)
    edges = WordEdges.of(tokenizers.source)
    source_words, source_of = words_of(edges.begins(ids, first), pieces_of(tokenizers.source, text, ids))
    if not source_words:  # a stranger's tokenizer may find nothing in a text
        return
    edges = edges if tokenizers.are_one else WordEdges.of(tokenizers.target)
    shown = [tokenizers.target.decode_bytes(tokens[:n]) for n in range(len(tokens) + 1)]
    begins = edges.begins(tokens, first)
    places = [*np.flatnonzero(begins).tolist(), len(tokens)]
    for begin, end in itertools.pairwise(places):
        word = shown[end][len(shown[begin]) :].decode(errors="replace").strip()
        looks = np.zeros(len(source_words))
        np.add.at(looks, source_of, weights[begin:end, : len(ids)].mean(0))
        best = int(looks.argmax())
        told = tuple((name, float(share)) for name, share in zip(source_words, looks, strict=True))
        yield Link(word, source_words[best], float(looks[best]), told)
