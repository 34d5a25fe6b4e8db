"""word2vec: a vector for each word, learned from the words around it.

Mikolov et al. 2013, "Efficient Estimation of Word Representations in Vector Space" (CBOW and skip-gram) and
"Distributed Representations of Words and Phrases and their Compositionality" (negative sampling, sub-sampling).
CBOW guesses a word from the mean of the words around it; skip-gram guesses it from each of them alone.

Which matrix is the embedding? There are two: `input`, by which a word is read, and `output`, by which it is guessed.
In skip-gram it is the first. In CBOW both carry it about equally; the usual programs keep the first, and so do we.

`examples.py` draws the examples, `kernel.py` is the compiled loop that learns from them, `workers.py` runs it in
threads; `loss.py` writes plainly what the loop computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, ClassVar, Self

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from weft.blocks.roles import HEAD, TOKENS, by_name
from weft.blocks.work import Work
from weft.config import Between, Share, Size
from weft.models.base import LayerStack, Maker, Model, ModelConfig
from weft.models.capabilities import Capability, WordVectorTable
from weft.models.example_step import example_cross_entropy
from weft.models.sites import ReachStack, without_layers
from weft.models.sizing import Sizing
from weft.models.word2vec.examples import Chances, Words
from weft.models.word2vec.learning import lined_up
from weft.models.word2vec.workers import Workers


class Word2VecConfig(ModelConfig):
    """What both kinds have.

    vocab_size   words
    window       how far context reaches at most; each place draws its own reach from 1 … window
    negative     words drawn for each example that are not to be guessed; 0: all words compete (full softmax, slow)
    sample       words more frequent than this share of the text are passed over now and then; 0: never
    power        negatives are drawn with probability ∝ frequency ** power
    """

    learned_in_place = True
    alone: ClassVar[bool] = False  # each context word predicts by itself, instead of their mean

    vocab_size: Size
    width: Annotated[int, Between(1, 65536)] = 100
    window: Annotated[int, Between(1, 1000)] = 5
    negative: Annotated[int, Between(0, 200)] = 5
    sample: Share = 1e-3
    power: Share = 0.75

    @property
    def provides(self) -> frozenset[Capability]:
        return frozenset({WordVectorTable})

    def build(self) -> Word2Vec:
        return Word2Vec(self)


class CBOWConfig(Word2VecConfig, kind="cbow"):
    """A word from the mean of the words around it.

    The error goes back to each of them divided by their number, as the derivative of a mean says. word2vec.c leaves
    that division out (İrsoy et al. 2021, "Corrected CBOW Performs as well as Skip-gram").
    """

    learns: ClassVar = {WordVectorTable: Sizing(training={"optimizer": {"kind": "sgd", "learning_rate": 0.1}})}


class SkipGramConfig(Word2VecConfig, kind="skipgram", aliases=("skip-gram",)):
    """A word from each of the words around it alone."""

    alone = True
    learns: ClassVar = {
        WordVectorTable: Sizing(training={"optimizer": {"kind": "sgd", "learning_rate": 0.025}}, default=True)
    }


class Word2Vec(Model):
    """Two vectors for each word: `input`, by which it is read (the embedding), and `output`, by which it is guessed."""

    roles = by_name(input=TOKENS, output=HEAD)

    def __init__(self, config: Word2VecConfig) -> None:
        super().__init__()
        self.config = config
        self.input = nn.Embedding(config.vocab_size, config.width)
        self.output = nn.Embedding(config.vocab_size, config.width)
        nn.init.uniform_(self.input.weight, -1 / config.width, 1 / config.width)  # as in gensim
        nn.init.zeros_(self.output.weight)

    def layers_in_order(self) -> list[LayerStack]:
        return []

    @property
    def word_vectors(self) -> Float[Tensor, "V D"]:
        """The embedding: the vectors by which words are read."""
        return self.input.weight

    def lined_up(self) -> Self:
        """Align the rows of both tables with cache lines, for the loop."""
        for table in (self.input, self.output):
            table.weight = nn.Parameter(lined_up(table.weight.detach()))
        return self

    def chances(self, counts: NDArray[np.int64], seed: int) -> Chances:
        """The sampling probabilities for words with these counts."""
        return Chances(counts, self.config, seed)

    def workers(self, chances: Chances, blocks: Callable[[int], Words], threads: int, first: int = 0) -> Workers:
        """Threads that learn these blocks into this model; `first` is added to a block's number before it draws."""
        return Workers(self, chances, blocks, threads, first)

    def example_inputs(self, batch: int, length: int, make: Maker) -> tuple[Tensor, ...]:
        """Each word with those around it, window + 1 of them on average; skip-gram has an example for each."""
        config, around = self.config, self.config.window + 1
        examples, context = (batch * length * around, 1) if config.alone else (batch * length, around)
        words = make((examples, context), config.vocab_size)
        keep = torch.ones_like(words, dtype=torch.bool)
        compared = (make((examples, 1 + config.negative), config.vocab_size),) if config.negative else ()
        return (words, keep, *compared)

    def example_loss(self, batch: int, length: int, make: Maker) -> Tensor:
        scores = self(*self.example_inputs(batch, length, make))
        return -F.logsigmoid(scores).sum() if self.config.negative else example_cross_entropy(scores, make)

    def operations(self, context: Tensor, keep: Tensor, words: Tensor | None = None) -> Iterator[Work]:
        """Each mean is multiplied by the vectors of the words that it is compared with."""
        compared = self.config.vocab_size if words is None else words.shape[1]
        forward = 2.0 * len(context) * compared * self.config.width
        learned = self.input.weight.requires_grad + self.output.weight.requires_grad
        yield Work(forward, learned * forward, "head")

    def hidden(self, context: Int[Tensor, "N C"], keep: Bool[Tensor, "N C"]) -> Float[Tensor, "N D"]:
        """The mean of the vectors of the words around; of skip-gram there is one."""
        kept = keep.unsqueeze(-1).to(self.input.weight.dtype)
        return (self.input(context) * kept).sum(1) / kept.sum(1)

    def reach_stacks(self, part: str | None = None) -> list[ReachStack]:
        raise without_layers(self.config.kind)

    def forward(
        self,
        context: Int[Tensor, "N C"],
        keep: Bool[Tensor, "N C"],
        words: Int[Tensor, "N K"] | None = None,
    ) -> Float[Tensor, "N K"]:
        """The score of each of `words` in its context; None: of all words of the vocabulary."""
        hidden = self.hidden(context, keep)
        if words is None:
            return hidden @ self.output.weight.T
        return torch.einsum("nd,nkd->nk", hidden, self.output(words))
