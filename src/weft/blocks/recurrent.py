"""Recurrent layers: a state that is carried from token to token and holds all that came before.

`RecurrentLayer` runs torch's own kernels. The cells are the same in plain equations, a step at a time; a test keeps
them equal, numbers and gradients. Elman 1990, "Finding Structure in Time" (`rnn`); Hochreiter & Schmidhuber 1997, "Long
Short-Term Memory", with the forget gate of Gers et al. 2000 (`lstm`); Cho et al. 2014, "Learning Phrase Representations
using RNN Encoder–Decoder" (`gru`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from weft.blocks.cache import SumCache
from weft.blocks.roles import GATES, by_name
from weft.blocks.sight import Recurs, Sight
from weft.errors import ShapeError, UnsupportedError

Kind = Literal["rnn", "gru", "lstm"]
State = tuple[Tensor, ...]
"""The state of each row, (B, D) each: the output, and for an LSTM its memory cells."""

KERNELS: dict[str, type[nn.RNN | nn.GRU | nn.LSTM]] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


class StateCache(SumCache):
    """What a recurrent layer remembers: its state after all tokens read, of the same size however many they are."""

    def __repr__(self) -> str:
        return f"StateCache({self.length} tokens)"

    @property
    def state(self) -> State | None:
        """(B, D) each; None before the first token."""
        return self.sums

    def before(self, first: Float[Tensor, "N D"], rows: int) -> Float[Tensor, "R D"]:
        """The output from which `rows` texts continue: the last one, or `first` if nothing was read yet."""
        found = first if self.state is None else self.state[0]
        if len(found) != rows:
            raise ShapeError(f"{rows} rows for states of {len(found)}", expected="the same batch")
        return found

    def begin(self, state: State) -> None:
        """Go on from this state."""
        self.sums = state

    def rewind(self, tokens: int | Int[Tensor, "B"]) -> None:
        try:
            super().rewind(tokens)
        except UnsupportedError:
            raise UnsupportedError(
                "rewinding a recurrent state", expected="all of it or nothing: what was read cannot be taken out again"
            ) from None


class RecurrentLayer(nn.Module):
    """One layer that reads rows of vectors from the first to the last.

    With `lengths`, each row is real up to its length, and padding after that; outputs there have no meaning. As
    no token sees a later one, padding changes nothing before it; the state to remember is that of the last real one.
    """

    roles = by_name(kernel=GATES)

    def __init__(self, kind: Kind, inputs: int, width: int) -> None:
        super().__init__()
        self.kernel = KERNELS[kind](inputs, width, batch_first=True)
        self.kind = kind
        self.reset()

    def reset(self) -> None:
        """Inputs by 1/√inputs; an orthogonal map of the state, so that it neither dies nor explodes at first; an LSTM
        begins by keeping what it has (forget gate: Jozefowicz et al. 2015)."""
        for name, p in self.kernel.named_parameters():
            if name.startswith("bias"):
                nn.init.zeros_(p)
            elif name.startswith("weight_ih"):
                nn.init.normal_(p, std=p.shape[1] ** -0.5)
            else:
                for gate in p.detach().chunk(p.shape[0] // p.shape[1]):
                    nn.init.orthogonal_(gate)
        if self.kind == "lstm":
            nn.init.ones_(self.kernel.bias_ih_l0.detach().chunk(4)[1])  # type: ignore[operator]

    def forward(
        self, x: Float[Tensor, "B T D"], *, lengths: Int[Tensor, "B"] | None = None, cache: StateCache | None = None
    ) -> Float[Tensor, "B T W"]:
        before = None if cache is None else cache.state
        if before is not None and len(before[0]) != len(x):
            raise ShapeError(f"{len(x)} rows for a cache of {len(before[0])}", expected="the same batch")
        if cache is None or lengths is None:
            out, after = self.kernel(x, self._given(before, x.dtype))
            if cache is not None:
                cache.add(self._taken(after), x.shape[1])
            return out
        packed = pack_padded_sequence(x, lengths.clamp(min=1).cpu(), batch_first=True, enforce_sorted=False)
        out, after = self.kernel(packed, self._given(before, x.dtype))
        empty = (lengths == 0)[:, None]
        state = self._taken(after)
        old = [torch.zeros_like(new) for new in state] if before is None else before
        state = tuple(torch.where(empty, kept, new) for kept, new in zip(old, state, strict=True))
        real = torch.arange(x.shape[1], device=x.device) < lengths[:, None]
        cache.add(state, x.shape[1], real)
        unpacked: Tensor = pad_packed_sequence(out, batch_first=True, total_length=x.shape[1])[0]
        return unpacked

    def sees(self) -> tuple[Sight, ...]:
        """All that came before."""
        return (Recurs(),)

    def _given(self, state: State | None, dtype: torch.dtype) -> Any:
        """A state as torch's kernel takes it."""
        if state is None:
            return None
        stacked = tuple(part[None].to(dtype) for part in state)
        return stacked if self.kind == "lstm" else stacked[0]

    def _taken(self, state: Any) -> State:
        """And as it gives it."""
        return tuple(part[0] for part in state) if self.kind == "lstm" else (state[0],)


class BothWays(nn.Module):
    """Two layers of half the width: one reads each row from the first token to the last, the other from the last.

    Schuster & Paliwal 1997, "Bidirectional Recurrent Neural Networks".
    """

    def __init__(self, kind: Kind, inputs: int, width: int) -> None:
        super().__init__()
        if width % 2:
            raise ShapeError(f"width = {width} for two directions", expected="an even number")
        self.forwards = RecurrentLayer(kind, inputs, width // 2)
        self.backwards = RecurrentLayer(kind, inputs, width // 2)

    def sees(self) -> tuple[Sight, ...]:
        """Everything."""
        return (Recurs(both_ways=True),)

    def forward(
        self, x: Float[Tensor, "B T D"], *, lengths: Int[Tensor, "B"] | None = None, cache: StateCache | None = None
    ) -> Float[Tensor, "B T W"]:
        if cache is not None:
            raise UnsupportedError("a cache for a layer that reads both ways", expected="whole texts, and no cache")
        return torch.cat([self.forwards(x), turned(self.backwards(turned(x, lengths)), lengths)], -1)


def turned(x: Float[Tensor, "B T D"], lengths: Int[Tensor, "B"] | None) -> Float[Tensor, "B T D"]:
    """Each row from its last real token to its first; padding stays where it is."""
    if lengths is None:
        return x.flip(1)
    places = torch.arange(x.shape[1], device=x.device)
    back = lengths[:, None] - 1 - places
    back = torch.where(back < 0, places, back)
    return x.gather(1, back[..., None].expand_as(x))


def real_first(keep: Bool[Tensor, "B T"]) -> tuple[Int[Tensor, "B T"], Int[Tensor, "B"]]:
    """The places of each row's real tokens, in order, then those of its padding; and how many are real."""
    return (~keep).to(torch.uint8).argsort(dim=1, stable=True), keep.sum(1)


# -- the same in plain equations --------------------------------------------------------------


class Cell(nn.Module, ABC):
    """One step: a vector for each row and the state before it give the state after it, whose first part is the output.

    All gates are one map of the input and one of the state, each with a bias, as in torch.
    """

    roles = by_name(input=GATES, recurrent=GATES)
    gates: ClassVar[int]
    parts: ClassVar[int] = 1

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.input = nn.Linear(inputs, self.gates * width)
        self.recurrent = nn.Linear(width, self.gates * width)

    @classmethod
    def of(cls, kernel: nn.RNNBase) -> Cell:
        """The cell that shares a kernel's weights."""
        cell = cls(kernel.input_size, kernel.hidden_size)
        names = ("weight_ih_l0", "bias_ih_l0", "weight_hh_l0", "bias_hh_l0")
        cell.input.weight, cell.input.bias, cell.recurrent.weight, cell.recurrent.bias = (
            getattr(kernel, name) for name in names
        )
        return cell

    @abstractmethod
    def step(self, x: Float[Tensor, "B D"], state: State) -> State:
        """The state after one more vector of each row."""

    def forward(self, x: Float[Tensor, "B T D"], state: State | None = None) -> tuple[Float[Tensor, "B T W"], State]:
        """All steps, one after the other; it begins with zeros."""
        if state is None:
            state = tuple(x.new_zeros(len(x), self.width) for _ in range(self.parts))
        out = []
        for now in x.unbind(1):
            state = self.step(now, state)
            out.append(state[0])
        return torch.stack(out, 1), state


class RNNCell(Cell):
    """h ← tanh(W x + U h)."""

    gates = 1

    def step(self, x: Float[Tensor, "B D"], state: State) -> State:
        return (torch.tanh(self.input(x) + self.recurrent(state[0])),)


class GRUCell(Cell):
    """r, z: reset and update gates. n = tanh(W x + r · U h); h ← z · h + (1 − z) · n."""

    gates = 3

    def step(self, x: Float[Tensor, "B D"], state: State) -> State:
        (h,) = state
        (r, z, n), (hr, hz, hn) = self.input(x).chunk(3, -1), self.recurrent(h).chunk(3, -1)
        r, z = torch.sigmoid(r + hr), torch.sigmoid(z + hz)
        n = torch.tanh(n + r * hn)
        return (z * h + (1 - z) * n,)


class LSTMCell(Cell):
    """i, f, o: input, forget and output gates. c ← f · c + i · tanh(W x + U h); h = o · tanh(c)."""

    gates = 4
    parts = 2

    def step(self, x: Float[Tensor, "B D"], state: State) -> State:
        h, c = state
        i, f, g, o = (self.input(x) + self.recurrent(h)).chunk(4, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c


CELLS: dict[str, type[Cell]] = {"rnn": RNNCell, "gru": GRUCell, "lstm": LSTMCell}
