"""A recurrent layer that attends to a memory before every step (Bahdanau et al. 2015).

The next state needs the context, which needs the last state: training runs through a text token by token too.
What does not depend on states is computed once before the first step, for all tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from weft.blocks.attention.additive import AdditiveAttention
from weft.blocks.attention.base import Mask
from weft.blocks.roles import GATES
from weft.blocks.sight import Looks, Recurs, Sight
from weft.blocks.work import Work


@dataclass(frozen=True, eq=False)
class Answers:
    """A memory as an attentive layer needs it: its values, their keys, the input of each to the gates, and which are
    real."""

    values: Float[Tensor, "N S W"]
    keys: Float[Tensor, "N S A"]
    gates: Float[Tensor, "N S G"]
    keep: Bool[Tensor, "N S"] | None = None

    def select(self, rows: Int[Tensor, "R"]) -> Answers:
        """These rows, in this order."""
        keep = None if self.keep is None else self.keep[rows]
        return Answers(self.values[rows], self.keys[rows], self.gates[rows], keep)


class AttentiveGRU(nn.Module):
    """A gated recurrent unit whose input is a token and the context that its last state attends to in a memory.

    reset, update = σ(W x + C c + U s),  candidate = tanh(W x + C c + reset · U s),  s' = between candidate and s by
    update, with c the additive attention of s (gates as in torch's GRU, after Cho et al. 2014).
    """

    role = GATES

    def __init__(self, width: int, *, memory_width: int, attention_width: int) -> None:
        super().__init__()
        self.width = width
        self.input = nn.Linear(width, 3 * width)
        self.context = nn.Linear(memory_width, 3 * width, bias=False)
        self.state = nn.Linear(width, 3 * width)
        self.attention = AdditiveAttention(state_width=width, memory_width=memory_width, width=attention_width)

    def maps_by_head(self) -> dict[Tensor, int]:
        """How many maps the rows of each matrix are: one for each gate."""
        return {part.weight: 3 for part in (self.input, self.context, self.state)}

    def sees(self) -> tuple[Sight, ...]:
        """The context of a token is in the states of all tokens after it."""
        return Looks(at="memory"), Recurs()

    def remember(self, values: Float[Tensor, "N S W"], keep: Bool[Tensor, "N S"] | None) -> Answers:
        """Map a memory once. An average of values, mapped, is the average of mapped values: so the map is made here,
        for each value, and not for each step."""
        if keep is not None:
            values = values.masked_fill(~keep[..., None], 0.0)
        return Answers(values, self.attention.key(values), self.context(values), keep)

    def forward(
        self, x: Float[Tensor, "B T D"], state: Float[Tensor, "B D"], memory: Answers
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B T W"]]:
        """The state after each token, and the context before it. Neighbouring rows may share a memory."""
        sources, width = len(memory.values), self.width
        readers = len(x) // sources
        given = self.input(x).unbind(1)
        maps = torch.cat([self.state.weight, self.attention.query.weight])
        bias = F.pad(self.state.bias, (0, self.attention.query.out_features))
        closed = None if memory.keep is None else ~memory.keep[:, None]
        states, queries, weights = [], [], []
        for one in given:
            both = F.linear(state, maps, bias)
            gates, query = both[:, : 3 * width], both[:, 3 * width :].view(sources, readers, -1)
            scores = self.attention.core.scores(query, memory.keys)
            looks = (scores if closed is None else scores.masked_fill(closed, -torch.inf)).softmax(-1)
            added = one + (looks @ memory.gates).flatten(0, 1)
            reset, update = torch.sigmoid(added[:, : 2 * width] + gates[:, : 2 * width]).chunk(2, 1)
            candidate = torch.tanh(added[:, 2 * width :] + reset * gates[:, 2 * width :])
            state = torch.lerp(candidate, state, update)
            states.append(state)
            queries.append(query)
            weights.append(looks)
        context = self.attention(
            torch.stack(queries, 2).flatten(1, 2),
            memory.keys,
            memory.values,
            mask=Mask(keep=memory.keep),
            weights=torch.stack(weights, 2).flatten(1, 2),
        )
        return torch.stack(states, 1), context.view(len(x), len(given), -1)

    def operations(self, x: Tensor, state: Tensor, memory: Answers) -> Iterator[Work]:
        """Step by step: maps of the state, a small network for each pair, and what the memory adds to the gates."""
        steps, answering = 2.0 * x.shape[0] * x.shape[1], memory.keys.shape[1]
        own, query = self.state.weight, self.attention.query.weight
        gates = steps * own.numel()
        yield Work(gates, (1 + own.requires_grad) * gates)
        asked = steps * query.numel()
        yield Work(asked, (1 + query.requires_grad) * asked, "attention maps")
        scored = steps * answering * query.shape[0]
        learned = self.attention.core.score.requires_grad  # the small network's last map, which is one vector
        yield Work(scored, learned * scored, "attention scores")
        mixed = steps * answering * memory.gates.shape[2]
        yield Work(mixed, (1 + memory.gates.requires_grad) * mixed, "attention scores")
