"""The cost of one training step of a bag of words: next to nothing, and the optimizer is most of it."""

from __future__ import annotations

from weft.cost.language_model import BYTES, Cost, cost_of
from weft.models import BagOfWordsConfig


@cost_of.register
def bag_of_words_cost(config: BagOfWordsConfig, *, batch: int, length: int, optimizer_copies: float = 2.0) -> Cost:
    """Each token is looked up and added, and so is its gradient; every weight is then moved.

    Memory: weights, gradients, optimizer state, and what each token says of each class.
    """
    parameters = config.features * config.width + config.width
    tokens = batch * length
    memory = int(BYTES * (parameters * (2 + optimizer_copies) + tokens * (3 * config.width + 8)))
    return Cost(parameters, tokens, 3.0 * tokens * config.width + 12.0 * parameters, memory)
