"""word2vec: a vector for each word, learned from the words around it.

Mikolov et al. 2013, "Efficient Estimation of Word Representations in Vector Space" (CBOW and skip-gram) and
"Distributed Representations of Words and Phrases and their Compositionality" (negative sampling, sub-sampling).
CBOW guesses a word from the mean of the words around it; skip-gram guesses it from each of them alone.

Which matrix is the embedding? There are two: `input`, by which a word is read, and `output`, by which it is guessed.
In skip-gram it is the first. In CBOW both carry it about equally; the usual programs keep the first, and so do we.

How examples are drawn stands in `word2vec_examples.py`, the compiled loop that learns from them in
`word2vec_kernel.py`; what both compute is written plainly in `weft.objectives.word_vectors`.
"""

from __future__ import annotations

from typing import Annotated

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from weft.config import Between, Share, Size
from weft.models.base import ModelConfig


class Word2VecConfig(ModelConfig):
    """What both kinds have.

    vocab_size   words
    window       how far context reaches at most; each place draws its own reach from 1 … window
    negative     words drawn for each example that are not to be guessed; 0: all words compete (full softmax, slow)
    sample       words more frequent than this share of the text are passed over now and then; 0: never
    power        negatives are drawn by frequency to this power
    """

    vocab_size: Size
    width: Annotated[int, Between(1, 65536)] = 100
    window: Annotated[int, Between(1, 1000)] = 5
    negative: Annotated[int, Between(0, 200)] = 5
    sample: Share = 1e-3
    power: Share = 0.75

    def build(self) -> Word2Vec:
        return Word2Vec(self)


class CBOWConfig(Word2VecConfig, kind="cbow"):
    """A word from the mean of the words around it.

    The error goes back to each of them divided by their number, as the derivative of a mean says. word2vec.c leaves
    that division out (İrsoy et al. 2021, "Corrected CBOW Performs as well as Skip-gram").
    """


class SkipGramConfig(Word2VecConfig, kind="skipgram", aliases=("skip-gram",)):
    """A word from each of the words around it alone."""


class Word2Vec(nn.Module):
    """Two vectors for each word: `input`, by which it is read (the embedding), and `output`, by which it is guessed."""

    def __init__(self, config: Word2VecConfig) -> None:
        super().__init__()
        self.config = config
        self.input = nn.Embedding(config.vocab_size, config.width)
        self.output = nn.Embedding(config.vocab_size, config.width)
        nn.init.uniform_(self.input.weight, -1 / config.width, 1 / config.width)  # as in gensim
        nn.init.zeros_(self.output.weight)

    def hidden(self, context: Int[Tensor, "N C"], keep: Bool[Tensor, "N C"]) -> Float[Tensor, "N D"]:
        """The mean of the vectors of the words around; of skip-gram there is one."""
        kept = keep.unsqueeze(-1).to(self.input.weight.dtype)
        return (self.input(context) * kept).sum(1) / kept.sum(1)

    def forward(
        self,
        context: Int[Tensor, "N C"],
        keep: Bool[Tensor, "N C"],
        words: Int[Tensor, "N K"] | None = None,
    ) -> Float[Tensor, "N K"]:
        """How well each of `words` fits among its context: a score each; None: of all words of the vocabulary."""
        hidden = self.hidden(context, keep)
        if words is None:
            return hidden @ self.output.weight.T
        return torch.einsum("nd,nkd->nk", hidden, self.output(words))


PRESETS: dict[str, dict[str, object]] = {}
