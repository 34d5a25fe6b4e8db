"""Vectors of texts: the mean of the states of their tokens, from any model that reads, also one that writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weft.blocks import length_buckets
from weft.errors import ConfigError, UnsupportedError
from weft.models import CausalLM, EncodesText, WordVectorTable
from weft.tasks.embed.word_vectors import NearestWords
from weft.tasks.given import check_texts
from weft.tasks.run import Run
from weft.tasks.use import what_it_does

MAX_WINDOW_TOKENS = 512  # tokens read at once; what is longer is read in pieces, and all of them count
TOKENS_PER_ROW = 1024  # tokens in a row
Pool = Literal["mean", "first", "last"]
Floats = NDArray[np.float32]
Ids = NDArray[np.int64]


class Embedder:
    """A run that gives a vector for each text.

    `pool`: the mean over all tokens, or the state of the `first` ([CLS], which a classifier reads) or the `last`
    (which has seen everything in a model that writes).
    """

    def __init__(self, run: Run, pool: Pool = "mean") -> None:
        config = run.model_config
        if EncodesText not in config.provides:
            given = f"{run.directory.path} is a {config.kind}: it {what_it_does(config)}"
            raise UnsupportedError(f"{given}, and gives no vectors of texts", expected="a model with states of tokens")
        if pool not in ("mean", "first", "last"):
            raise ConfigError(f"pool = {pool!r}", expected="mean, first or last")
        self.writes = CausalLM in config.provides
        if pool == "first" and self.writes:
            raise ConfigError(
                "pool = 'first' of a model that writes", expected="mean or last: its first has seen nothing"
            )
        self.run, self.pool, self.model = run, pool, cast(EncodesText, run.model)
        self.tokenizer = run.tokenizer
        self.length = min(MAX_WINDOW_TOKENS, self.model.context or MAX_WINDOW_TOKENS)

    @property
    def width(self) -> int:
        """Numbers in a vector."""
        return int(cast(Any, self.run.model_config).width)

    def vectors(self, texts: Sequence[str]) -> Floats:
        """(N, width) in the order given."""
        rows = self.tokenizer.encode_batch(list(texts))
        windows = [(n, piece) for n, ids in enumerate(rows) for piece in self._pieces(ids.astype(np.int64))]
        found = np.zeros((len(texts), self.width), dtype=np.float64)
        counts = np.zeros(len(texts))
        with torch.inference_mode():
            for places in length_buckets([len(piece) for _, piece in windows], TOKENS_PER_ROW):
                sums, sizes = self._pooled([windows[place][1] for place in places])
                vectors = sums.numpy()
                for place, vector, size in zip(places, vectors, sizes, strict=True):
                    number = windows[place][0]
                    if self.pool == "last" and place + 1 < len(windows) and windows[place + 1][0] == number:
                        continue  # not the last piece of its text
                    if self.pool == "first" and place and windows[place - 1][0] == number:
                        continue
                    found[number] += vector
                    counts[number] += size
        return (found / counts[:, None]).astype(np.float32)

    def _pieces(self, ids: Ids) -> Iterator[Ids]:
        """The text as the model reads it, in pieces that fit."""
        special = self.tokenizer.special
        if self.writes:
            ids = ids if len(ids) else np.array([self.tokenizer.end])
            for start in range(0, len(ids), self.length):
                yield ids[start : start + self.length]
            return
        if special.classify is None or special.separate is None:
            raise UnsupportedError(f"the tokenizer of {self.run.directory.path} has no [CLS] and [SEP]")
        step = self.length - 2
        for start in range(0, max(1, len(ids)), step):
            yield np.concatenate([[special.classify], ids[start : start + step], [special.separate]])

    def _pooled(self, pieces: list[Ids]) -> tuple[Tensor, list[int]]:
        """The sum of states of each piece and how many they are; marks count only where there is nothing else."""
        states = self.model.text_states(pieces)
        if self.pool != "mean":
            place = 0 if self.pool == "first" else -1
            return torch.stack([rows[place] for rows in states]).cpu().double(), [1] * len(pieces)
        marks = 0 if self.writes else 1
        inner = [rows[marks : len(rows) - marks] if len(rows) > 2 * marks else rows for rows in states]
        return torch.stack([rows.cpu().double().sum(0) for rows in inner]), [len(rows) for rows in inner]


class WordEmbedder:
    """The same for a run of word vectors: each text is a word."""

    def __init__(self, run: Run, pool: Pool = "mean") -> None:
        if pool != "mean":
            raise ConfigError(f"pool = {pool!r} of word vectors", expected="nothing: a word has one vector")
        self.words = NearestWords(run)
        self.width = self.words.width

    def vectors(self, texts: Sequence[str]) -> Floats:
        """(N, width) in the order given; an unknown word is an error."""
        return self.words.of(texts)


def embedder_of(run: Run, pool: Pool = "mean") -> Embedder | WordEmbedder:
    """What gives vectors: of texts, or of words."""
    words = WordVectorTable in run.model_config.provides
    return WordEmbedder(run, pool) if words else Embedder(run, pool)


class EmbedsTexts(Run):
    """A run whose model may give vectors of texts."""

    def embed(self, texts: str | Sequence[str], *, pool: Pool = "mean") -> Floats:
        """The vector of a text (width,), or of each in a list (N, width); of runs of word vectors, of words."""
        found = embedder_of(self, pool).vectors(check_texts(texts, "to embed"))
        return found[0] if isinstance(texts, str) else found


class TextEncoder(EmbedsTexts):
    """A model that only reads texts: it gives vectors, and is a place to begin training from."""


def cosines(vectors: Floats) -> NDArray[np.float64]:
    """(N, N): how alike the directions of the vectors are."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    unit = vectors / np.maximum(lengths, 1e-12)
    return unit @ unit.T
