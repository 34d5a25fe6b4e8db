"""Reach: which inputs a position can have seen after n layers.

Predicted: each layer lets a state see the states before it by the pattern of its attention, and itself by the residual;
patterns one after the other are a product of boolean tables. Measured: the gradient of the state at a position to the
vectors that went into the first layer; what was never seen has a gradient of exactly zero. A convolution widens its
view by a fixed step with every layer (Luo et al. 2016, "Understanding the Effective Receptive Field"), and local
attention too; full attention sees all at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor, nn

from weft.analysis.capturing import AttentionMap
from weft.blocks.attention import Attention, AttentionConfig, Mask
from weft.blocks.attention.base import AttentionCore, Grid
from weft.errors import ConfigError, UnsupportedError

Seen = Bool[np.ndarray, "T S"]
HEAD_WIDTH = 8
LARGEST = 5e8  # pairs of places in a table
DIRECTIONS = 3  # random ones, each with other inputs: that all are zero by chance does not happen


@dataclass(frozen=True, eq=False)
class Reach:
    """What one position sees.

    position   of the state that is asked for
    layers     names of the layers, in their order
    predicted  (layers, inputs): whether the state after this layer can have seen that input
    measured   the same by gradients; None: not tried
    grid       the last inputs are places of an image, row by row
    sources    so many of the first inputs belong to another text, which was read before
    note       what is to be known besides
    """

    position: int
    layers: tuple[str, ...]
    predicted: Bool[np.ndarray, "L S"]
    measured: Bool[np.ndarray, "L S"] | None = None
    grid: Grid | None = None
    sources: int = 0
    note: str = ""

    @property
    def counts(self) -> list[int]:
        """How many inputs it sees after 1, 2, 3 … layers."""
        return [int(count) for count in self.predicted.sum(1)]

    @property
    def agrees(self) -> bool | None:
        """Whether predicted and measured are the same; None: not tried."""
        return None if self.measured is None else bool((self.predicted == self.measured).all())


def reach(
    layers: AttentionConfig | Sequence[nn.Module],
    length: int,
    position: int,
    *,
    causal: bool = False,
    depth: int = 3,
    grid: Grid | None = None,
    seed: int = 0,
) -> Reach:
    """Of attention modules with a residual around each: one for each layer of a kind, `depth` of them, or these.

    With a `grid` the positions are the places of an image.
    """
    if not -length <= position < length:
        raise ConfigError(f"position {position} in a row of {length}", expected=f"from 0 to {length - 1}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        modules = _built(layers, depth) if isinstance(layers, AttentionConfig) else list(layers)
        modules = [module.double().eval() for module in modules]
        mask = Mask(causal=causal, grid=grid)
        patterns = [seen_pairs(module, length, mask) for module in modules]
        width = int(modules[0].width)  # type: ignore[arg-type]
        measured = np.zeros((len(modules), length), dtype=bool)
        for _ in range(DIRECTIONS):
            x = torch.randn(1, length, width, dtype=torch.float64, requires_grad=True)
            states, state = [], x
            for module in modules:
                state = state + module(state, mask=mask)
                states.append(state)
            measured |= has_gradient(states, [x], position % length)
    names = tuple(str(number) for number in range(1, len(modules) + 1))
    return Reach(position % length, names, composed(patterns, position % length), measured, grid)


def composed(patterns: Sequence[Seen], position: int) -> Bool[np.ndarray, "L N"]:
    """What the position has seen after each of the layers, each of which lets row t see the columns s, and itself."""
    rows = []
    for depth in range(1, len(patterns) + 1):
        seen = one_place(position, len(patterns[0]))
        for pattern in reversed(patterns[:depth]):
            seen = pattern[seen].any(0) | seen
        rows.append(seen)
    return np.stack(rows)


def one_place(position: int, length: int) -> Bool[np.ndarray, "_"]:
    """The set of this place alone."""
    found: np.ndarray = np.arange(length) == position
    return found


def seen_pairs(module: nn.Module, length: int, mask: Mask) -> Seen:
    """Row t, column s: whether this attention lets t look at s, by its own rule and not by trying."""
    if not isinstance(module, Attention):
        raise UnsupportedError(f"a {type(module).__name__}", expected="attention that looks values up")
    found = _pairs(module.core, mask, length, length)
    return np.ones((length, length), dtype=bool) if found is None else found


def allowed_pairs(found: AttentionMap) -> Seen | None:
    """The same for what one core was given: (asking, answering), for the first row and head; None: all see all."""
    return _pairs(found.core, found.mask, found.query.shape[2], found.key.shape[2])


def _pairs(core: AttentionCore, mask: Mask, asking: int, answering: int) -> Seen | None:
    if asking * answering > LARGEST:
        raise UnsupportedError(f"who sees whom of {asking:,} and {answering:,}", expected="a shorter text (--length)")
    said = [part.device for part in (mask.keep, mask.allow) if part is not None]
    allowed = core.allowed(mask, asking, answering, said[0] if said else torch.device("cpu"))
    if allowed is None:
        return None
    allowed = allowed if allowed.dim() == 2 else allowed[0, 0]
    return allowed.expand(asking, answering).cpu().numpy()


def _built(config: AttentionConfig, depth: int) -> list[nn.Module]:
    """A narrow module for each layer."""
    found: list[nn.Module] = []
    for number in range(depth):
        here = config.for_layer(number)
        found.append(here.build(HEAD_WIDTH * (getattr(here, "heads", None) or 1)))
    return found


def has_gradient(states: Sequence[Tensor], inputs: Sequence[Tensor], position: int) -> Bool[np.ndarray, "L N"]:
    """Which inputs have a gradient that is not zero to each of the states at the position, in a random direction."""
    rows = []
    for state in states:
        at = state[:, position]
        gradients = torch.autograd.grad((at * torch.randn_like(at)).sum(), inputs, retain_graph=True, allow_unused=True)
        parts = [
            torch.zeros(given.shape[1], dtype=torch.bool) if g is None else (g != 0).any(-1).any(0)
            for g, given in zip(gradients, inputs, strict=True)
        ]
        rows.append(torch.cat(parts).cpu().numpy())
    return np.stack(rows)
