"""Who sees whom in a layer: what layers say of themselves (`weft.blocks.sight`) is read backwards here.

The question is always the same: of a set of places after a layer, which places before it have these seen? For attention
that follows from the cores that ran, for convolutions and recurrence from what they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool
from torch import Tensor, nn

from weft.analysis.capturing import AttentionMap
from weft.analysis.reach import Seen, allowed_pairs
from weft.blocks.attention.base import Grid
from weft.blocks.sight import Begins, Convolves, Looks, Recent, Recurs, Sight
from weft.errors import UnsupportedError
from weft.models.sites import ReachLayer, ReachStack

Places = Bool[np.ndarray, "_"]
"""A set of places: whether each belongs to it."""


@dataclass
class Ran:
    """What was seen of a model while it ran: the vectors that went into each stack of layers, the states after each
    layer, the attention, the names of all modules, and the grids on which the layers stood, before and after."""

    inputs: list[Tensor] = field(default_factory=list)
    states: list[list[Tensor]] = field(default_factory=list)
    maps: Mapping[str, AttentionMap] = field(default_factory=dict)
    names: Mapping[nn.Module, str] = field(default_factory=dict)
    grids: dict[nn.Module, Grid] = field(default_factory=dict)
    grids_after: dict[nn.Module, Grid] = field(default_factory=dict)
    image: Grid | None = None  # of the first places of an image
    held: bool = True  # statistics that all places share are taken as given
    _pairs: dict[str, Seen | None] = field(default_factory=dict)

    def looks(self, name: str, asked: Places, cut: Places | None = None) -> Places:
        """The keys that these places may look at in the attention of this name; of a `cut`, those that are in it.

        Worked out once, and asked for by every layer behind; layers with the same pattern share it.
        """
        if name not in self._pairs:
            found = allowed_pairs(self.maps[name])
            if found is not None:
                found = found if cut is None else found[np.ix_(cut, cut)]
                known = (one for one in self._pairs.values() if one is not None)
                found = next((one for one in known if np.array_equal(one, found)), found)
            self._pairs[name] = found
        pairs = self._pairs[name]
        if pairs is None:
            keys = int(self.maps[name].key.shape[2]) if cut is None else int(cut.sum())
            return np.full(keys, asked.any())
        seen: Places = np.any(pairs[asked], axis=0)
        return seen


def seen_through(ran: Ran, layer: ReachLayer, asked: Places) -> tuple[Places, Places | None]:
    """Which places before the layer those that are asked for after it have seen, and which of the stack before; None:
    it reads nothing of that."""
    across = None
    for number, sight in reversed(list(enumerate(layer.sees))):
        if isinstance(sight, Looks):
            seen, read = _looked(ran, layer.module, sight, asked)
        elif isinstance(sight, Begins):
            seen, read = asked, _one_state(ran, asked, sight.place)
        else:
            seen, read = _passed(ran, layer, number, asked), None
        asked, across = seen, either(across, read)
    norms = any(isinstance(block, nn.GroupNorm) for block in layer.module.modules())
    if norms and not ran.held:  # they share statistics over the whole image
        asked = np.full_like(asked, asked.any())
    return asked, across


def sees_ahead(ran: Ran, stack: ReachStack) -> bool:
    """Whether a state may have seen what comes after it in its own stack."""

    def ahead(layer: ReachLayer, sight: Sight) -> bool:
        if isinstance(sight, Looks):
            return sight.at != "memory" and not ran.maps[_name(ran, layer.module, sight)].mask.causal
        return sight.both_ways if isinstance(sight, Recurs) else isinstance(sight, Convolves)

    return any(ahead(layer, sight) for layer in stack.layers for sight in layer.sees)


def place_after(ran: Ran, layer: ReachLayer, at: int) -> int:
    """The place of a smaller grid that stands where this one stood; a rest at the border belongs to the last."""
    for sight in layer.sees:
        if isinstance(sight, Convolves) and sight.convolution.stride != (1, 1):
            row, column = divmod(at, ran.grids[layer.module].columns)
            after = ran.grids_after[layer.module]
            down, across = sight.convolution.stride
            return min(row // down, after.rows - 1) * after.columns + min(column // across, after.columns - 1)
    return at


# -- attention and recurrence -----------------------------------------------------------------


def _name(ran: Ran, module: nn.Module, sight: Looks) -> str:
    """Of an attention among the modules of the whole model."""
    return f"{ran.names[module]}.{sight.attention}"


def _looked(ran: Ran, module: nn.Module, sight: Looks, asked: Places) -> tuple[Places, Places | None]:
    """By attention, and itself by the residual. A table may begin with the memory's keys; one over a grid that was
    filled up has only the places of the layer's own."""
    name = _name(ran, module, sight)
    seen = ran.looks(name, asked, _filled_up(ran, module, name))
    sources = 0 if sight.at == "stream" else ran.inputs[0].shape[1]
    if sight.at == "memory":
        return asked, seen[:sources]
    return seen[-len(asked) :] | asked, seen[:sources] if sources else None


def _filled_up(ran: Ran, module: nn.Module, name: str) -> Places | None:
    """Which keys are places of the layer's grid, where others fill it up that are no input; None: all are."""
    grid, around = ran.grids.get(module), ran.maps[name].mask.grid
    if grid is None or around is None or around == grid:
        return None
    real = np.zeros((around.rows, around.columns), dtype=bool)
    real[: grid.rows, : grid.columns] = True
    return real.ravel()


def _passed(ran: Ran, layer: ReachLayer, number: int, asked: Places) -> Places:
    sight, places = layer.sees[number], np.arange(len(asked))
    last = np.flatnonzero(asked).max() if asked.any() else -1
    if isinstance(sight, Recurs):
        return np.full_like(asked, asked.any()) if sight.both_ways else places <= last
    if isinstance(sight, Recent):
        since = places[:, None] - places  # how many tokens each lies before each
        seen: Places = np.any((0 <= since[asked]) & (since[asked] < sight.count), axis=0)
        return seen
    assert isinstance(sight, Convolves)
    before, after = _grids(ran, layer, number)
    return seen_by_convolution(asked, sight.convolution, after, before)


def _one_state(ran: Ran, asked: Places, place: int) -> Places:
    """One state of what was read before, whoever asks."""
    found = np.zeros(ran.inputs[0].shape[1], dtype=bool)
    found[place] = asked.any()
    return found


def either(one: Places | None, other: Places | None) -> Places | None:
    """What is in one set or the other; None is no set."""
    return one if other is None else other if one is None else one | other


# -- convolutions -----------------------------------------------------------------------------


def _grids(ran: Ran, layer: ReachLayer, number: int) -> tuple[Grid, Grid]:
    """On which a convolution of a layer reads and writes: one of them may make the grid smaller, the others stay."""
    before, after = ran.grids[layer.module], ran.grids_after[layer.module]
    convolutions = {n: sight.convolution for n, sight in enumerate(layer.sees) if isinstance(sight, Convolves)}
    steps = [n for n, convolution in convolutions.items() if convolution.stride != (1, 1)]
    others = [convolution for n, convolution in convolutions.items() if n not in steps]
    if len(steps) > 1 or not all(map(_keeps_the_grid, others)):
        raise UnsupportedError(
            f"the reach of a {type(layer.module).__name__} with {len(steps)} strides, from a grid of {before.rows} × "
            f"{before.columns} places to one of {after.rows} × {after.columns}",
            expected="at most one convolution that changes the grid, by its stride",
        )
    step = steps[0] if steps else number
    return (before if number <= step else after), (before if number < step else after)


def _keeps_the_grid(convolution: nn.Conv2d) -> bool:
    if isinstance(convolution.padding, str):
        return convolution.padding == "same"
    sizes = zip(convolution.kernel_size, convolution.dilation, convolution.padding, strict=True)
    return all(2 * around == far * (size - 1) for size, far, around in sizes)


def seen_by_convolution(asked: Places, convolution: nn.Conv2d, after: Grid, before: Grid) -> Places:
    """The places that a convolution's kernel covers when it stands at those that are asked for."""
    found = np.zeros((before.rows, before.columns), dtype=bool)
    rows, columns = np.divmod(np.flatnonzero(asked), after.columns)
    if isinstance(convolution.padding, str) or convolution.padding_mode != "zeros":
        raise UnsupportedError(f"the reach of {convolution}", expected="zeros around, as many as numbers say")
    (high, wide), (down, across), (low, far) = convolution.kernel_size, convolution.stride, convolution.dilation
    above, left = convolution.padding
    for y, x in np.ndindex(high, wide):
        row, column = rows * down - above + y * low, columns * across - left + x * far
        inside = (row >= 0) & (row < before.rows) & (column >= 0) & (column < before.columns)
        found[row[inside], column[inside]] = True
    return found.ravel()
