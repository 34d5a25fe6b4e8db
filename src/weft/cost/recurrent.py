"""The cost of one training step of a recurrent model, counted from its shapes without running it."""

from __future__ import annotations

from weft.cost.language_model import BYTES, Cost, cost_of
from weft.models import RecurrentConfig
from weft.models.rnn import NextConfig


@cost_of.register
def recurrent_cost(config: RecurrentConfig, *, batch: int, length: int, optimizer_copies: float = 2.0) -> Cost:
    """Each token goes once through every map, and backward costs twice as much; nothing is compared with anything.
    Memory: weights, gradients, optimizer state, and the gates and states of every token that backward needs."""
    model = config.skeleton()
    parameters = sum(p.numel() for p in model.parameters())
    maps = sum(p.numel() for name, p in model.named_parameters() if p.dim() == 2 and name != "tokens.weight")
    asked = config.vocab_size if isinstance(config.head, NextConfig) else 0
    if isinstance(config.head, NextConfig) and config.head.tied:
        maps += config.vocab_size * config.width
    tokens = batch * length
    gates = {"rnn": 1, "gru": 3, "lstm": 4}[config.kind]
    per_token = config.depth * (2 * gates + 4) * config.width + 2 * config.width + 3 * asked
    memory = int(BYTES * (parameters * (2 + optimizer_copies) + tokens * per_token))
    return Cost(parameters, tokens, 6.0 * tokens * maps, memory)
