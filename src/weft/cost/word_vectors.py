"""The cost of learning word vectors: a few rows of two matrices for each word, whatever the vocabulary."""

from __future__ import annotations

from weft.cost.language_model import BYTES, Cost, cost_of
from weft.models.word2vec import SkipGramConfig, Word2VecConfig


@cost_of.register
def word_vector_cost(config: Word2VecConfig, *, batch: int, length: int, optimizer_copies: float = 0.0) -> Cost:
    """A guess is compared with 1 + negative words, or with all: score, error and step cost 2·width each. On average
    window + 1 words are around; skip-gram guesses once for each. Weights change in place; a checkpoint copies them.
    """
    parameters = 2 * config.vocab_size * config.width
    compared = 1 + config.negative if config.negative else config.vocab_size
    around = config.window + 1
    guesses = around if isinstance(config, SkipGramConfig) else 1
    each = guesses * (6 * compared + 2) if isinstance(config, SkipGramConfig) else 6 * compared + 4 * around
    tokens = batch * length
    memory = int(BYTES * parameters * (2 + optimizer_copies)) + 16 * tokens
    return Cost(parameters, tokens, float(tokens * config.width * each), memory)
