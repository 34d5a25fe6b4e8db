"""The cost of one training step of a recurrent model that writes one text from another."""

from __future__ import annotations

from weft.cost.language_model import BYTES, Cost, cost_of
from weft.models.seq2seq import BahdanauConfig, RecurrentPairConfig


@cost_of.register
def recurrent_pair_cost(config: RecurrentPairConfig, *, batch: int, length: int, optimizer_copies: float = 1.5) -> Cost:
    """Every map is used once for each token of its side, and the table of the target as the head; additive attention
    compares each token with each of the source, 3 operations for an entry of the small network and 2 for each entry
    that is averaged. Forward and backward cost three times the forward part.

    Memory: weights, gradients, optimizer state and what backward needs.
    """
    model = config.skeleton()
    parameters = sum(p.numel() for p in model.parameters())
    maps = sum(p.numel() for name, p in model.named_parameters() if p.dim() == 2 and "tokens." not in name)
    maps += config.vocab_size * config.width
    tokens, width = batch * length, config.width
    flops, kept = 2.0 * maps, 20 * width * config.depth + 3 * config.vocab_size
    if isinstance(config, BahdanauConfig):
        compared = config.attention_width or width
        flops += length * (3 * compared + 2 * (3 + 2) * width)
        kept += length * (compared + 3) + 16 * width * config.depth + 12 * width
    memory = int(BYTES * (parameters * (2 + optimizer_copies) + tokens * kept))
    return Cost(parameters, tokens, 3.0 * tokens * flops, memory)
