"""What the layers of each family are, and who sees whom in them: for the reach of whole models.

A step answers one question: of a set of places after it, which places before it have these seen? For attention that
follows from the lookups that ran, for convolutions and recurrence from what they are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool
from torch import Tensor, nn

from weft.analysis import AttentionMap
from weft.analysis.reach import Seen, allowed_pairs
from weft.blocks.attention.base import Grid
from weft.blocks.attentive import AttentiveGRU
from weft.blocks.layer import JointLayer, TransformerLayer
from weft.blocks.recurrent import BothWays, RecurrentLayer
from weft.errors import ConfigError, UnsupportedError
from weft.models.convnext import ConvNeXt
from weft.models.davit import DaViT, PlacedLayer, Shrink, WindowLayer
from weft.models.encoder_decoder import EncoderDecoder
from weft.models.resnet import ResNet, ResNetLayer
from weft.models.seq2seq import Bahdanau, Seq2Seq

Places = Bool[np.ndarray, "_"]
"""A set of places: whether each belongs to it."""


@dataclass
class Ran:
    """What was seen of a model while it ran: the vectors that went into each stack of layers, the states after each
    layer, the attention, and the grids on which the layers stood, before and after."""

    inputs: list[Tensor] = field(default_factory=list)
    states: list[list[Tensor]] = field(default_factory=list)
    maps: Mapping[str, AttentionMap] = field(default_factory=dict)
    grids: dict[nn.Module, Grid] = field(default_factory=dict)
    grids_after: dict[nn.Module, Grid] = field(default_factory=dict)
    picture: Grid | None = None  # of the patches that went in
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


Sees = Callable[[Ran, Places], Places]


@dataclass(frozen=True, eq=False)
class Step:
    """A layer of a model.

    sees    places after it → the places before it that these have seen
    across  → those of another stream, whose states after its layer `memory` (−1: the last) it reads
    place   where a position stands after it
    """

    name: str
    module: nn.Module
    sees: Sees
    across: Sees | None = None
    memory: int = -1
    place: Callable[[Ran, int], int] = lambda _, place: place


@dataclass(frozen=True, eq=False)
class Stack:
    """Layers one after the other. `turned`: their inputs come in from the last to the first."""

    steps: Sequence[Step]
    turned: bool = False


# -- families ---------------------------------------------------------------------------------


@functools.singledispatch
def stacks_of(model: nn.Module, part: str | None = None) -> list[Stack]:
    """The layers whose states are asked for come last; those of a stack that is read before come first."""
    no_part(model, part)
    layers = getattr(model, "layers", None)
    if not isinstance(layers, nn.ModuleList) or not len(layers):
        raise UnsupportedError(
            f"the reach of a {type(model).__name__}", expected="a model whose layers stand in a list `layers`"
        )
    return [Stack([_step(f"layers.{n}", layer, n) for n, layer in enumerate(layers)])]


def no_part(model: nn.Module, part: str | None) -> None:
    """Refuse a part of a model that has only one."""
    if part is not None:
        raise ConfigError(f"the {part} of a {type(model).__name__}", expected="no part: it has one stack of layers")


def _step(name: str, layer: nn.Module, number: int) -> Step:
    if isinstance(layer, TransformerLayer):
        return Step(str(number + 1), layer, functools.partial(_looks, name=f"{name}.attention"))
    if isinstance(layer, RecurrentLayer | nn.RNNBase | BothWays):
        both = isinstance(layer, BothWays) or (isinstance(layer, nn.RNNBase) and layer.bidirectional)
        return Step(str(number + 1), layer, _everything if both else _what_came_before)
    raise UnsupportedError(f"the reach of a {type(layer).__name__}", expected="attention, recurrence or a convolution")


@stacks_of.register
def _of_pairs(model: EncoderDecoder, part: str | None = None) -> list[Stack]:
    encoder = Stack([_step(f"encoder.layers.{n}", layer, n) for n, layer in enumerate(model.encoder.layers)])
    decoder = []
    for n, layer in enumerate(model.decoder.layers):
        own, across = f"decoder.layers.{n}.attention", f"decoder.layers.{n}.cross_attention"
        if isinstance(layer, JointLayer):
            across = own
        memory = n if model.memory_from == "same" else -1
        looks = functools.partial(_looks, name=own)
        decoder.append(Step(str(n + 1), layer, looks, functools.partial(_looks_across, name=across), memory))
    return _chosen(part, encoder, Stack(decoder))


@stacks_of.register
def _of_one_vector(model: Seq2Seq, part: str | None = None) -> list[Stack]:
    """Each layer that writes begins with the last state of the layer that read beside it."""
    encoder = [_step("", layer, n) for n, layer in enumerate(model.encoder.layers)]
    decoder = [
        Step(str(n + 1), layer, _what_came_before, functools.partial(_one_state, place=-1), memory=n)
        for n, layer in enumerate(model.decoder.layers)
    ]
    return _chosen(part, Stack(encoder, turned=model.config.reverse), Stack(decoder))


@stacks_of.register
def _of_annotations(model: Bahdanau, part: str | None = None) -> list[Stack]:
    """The first layer that writes looks at all that was read; all begin with what came back to its first token."""
    encoder = [_step("", layer, n) for n, layer in enumerate(model.encoder.layers)]
    decoder = []
    for n, layer in enumerate(model.decoder.layers):
        began = functools.partial(_one_state, place=0)
        across = functools.partial(_has_looked, name=model.looks) if isinstance(layer, AttentiveGRU) else began
        decoder.append(Step(str(n + 1), layer, _what_came_before, across))
    return _chosen(part, Stack(encoder), Stack(decoder))


def _chosen(part: str | None, encoder: Stack, decoder: Stack) -> list[Stack]:
    if part not in (None, "encoder", "decoder"):
        raise ConfigError(f"part {part!r}", expected="encoder or decoder")
    return [encoder] if part == "encoder" else [encoder, decoder]


@stacks_of.register
def _of_davit(model: DaViT, part: str | None = None) -> list[Stack]:
    """Each half of a layer is a step: convolutions around attention in windows, then around attention of channels."""
    no_part(model, part)
    steps: list[Step] = []
    for number, stage in enumerate(model.stages):
        told, name = f"stage {number + 1}", f"stages.{number}"
        if isinstance(stage.shrink, Shrink):
            steps.append(_strided(f"{told}: shrunk", stage.shrink, stage.shrink.map))
        for n, layer in enumerate(stage.layers):  # type: ignore[arg-type]
            for half, word in (("spatial", "windows"), ("channel", "channels")):
                module = getattr(layer, half)
                sees = functools.partial(_placed, name=f"{name}.layers.{n}.{half}.attention", layer=module)
                steps.append(Step(f"{told}: {word} {n + 1}", module, sees))
    return [Stack(steps)]


@stacks_of.register
def _of_convolutions(model: ResNet | ConvNeXt, part: str | None = None) -> list[Stack]:
    no_part(model, part)
    steps: list[Step] = []
    for number, stage in enumerate(model.stages):
        told, halving = f"stage {number + 1}", getattr(stage, "halving", None)
        if halving is not None:
            steps.append(_strided(f"{told}: halved", halving, halving.patches))
        for n, layer in enumerate(stage.layers):  # type: ignore[arg-type]
            maps = (layer.first, layer.second) if isinstance(layer, ResNetLayer) else (layer.depthwise,)
            steps.append(_strided(f"{told}: layer {n + 1}", layer, *maps))
    return [Stack(steps)]


# -- attention and recurrence -----------------------------------------------------------------


def _looks(ran: Ran, asked: Places, name: str) -> Places:
    """By attention, and itself by the residual; of a table that begins with a memory's keys, the last ones."""
    return ran.looks(name, asked)[-len(asked) :] | asked


def _looks_across(ran: Ran, asked: Places, name: str) -> Places:
    """The memory's keys: all of the table, or its beginning."""
    return ran.looks(name, asked)[: ran.inputs[0].shape[1]]


def _has_looked(ran: Ran, asked: Places, name: str) -> Places:
    """What was looked up for a token is in the states of all that follow; and the first state was read too."""
    looked: Places = _looks_across(ran, _what_came_before(ran, asked), name)
    return looked | _one_state(ran, asked, place=0)


def _what_came_before(_: Ran, asked: Places) -> Places:
    """All up to the last one that is asked for."""
    return np.arange(len(asked)) <= (np.flatnonzero(asked).max() if asked.any() else -1)


def _everything(_: Ran, asked: Places) -> Places:
    return np.full_like(asked, asked.any())


def _one_state(ran: Ran, asked: Places, place: int) -> Places:
    """One state of what was read before, whoever asks."""
    found = np.zeros(ran.inputs[0].shape[1], dtype=bool)
    found[place] = asked.any()
    return found


# -- convolutions -----------------------------------------------------------------------------


def _strided(name: str, module: nn.Module, *maps: nn.Conv2d) -> Step:
    """A layer that is made of these convolutions, the first of which may take steps; the others stay on its grid."""
    return Step(name, module, functools.partial(_convolved, module=module, maps=maps), place=_moved(module, maps[0]))


def _moved(module: nn.Module, first: nn.Conv2d) -> Callable[[Ran, int], int]:
    def place(ran: Ran, at: int) -> int:
        """The place of the smaller grid that stands where this one stood; a rest at the border belongs to the last."""
        row, column = divmod(at, ran.grids[module].columns)
        after = ran.grids_after[module]
        down, across = first.stride
        return min(row // down, after.rows - 1) * after.columns + min(column // across, after.columns - 1)

    return place


def _convolved(ran: Ran, asked: Places, module: nn.Module, maps: Sequence[nn.Conv2d]) -> Places:
    """Through one convolution after the other, from the last to the first; beside them, itself by the residual lies
    within. Group norms share statistics over the whole picture: unless these are held, all see all."""
    if not ran.held and any(isinstance(block, nn.GroupNorm) for block in module.modules()):
        return np.full(ran.grids[module].places, asked.any())
    after = ran.grids_after[module]
    for convolution in maps[:0:-1]:
        asked = seen_by_convolution(asked, convolution, after, after)
    return seen_by_convolution(asked, maps[0], after, ran.grids[module])


def seen_by_convolution(asked: Places, convolution: nn.Conv2d, after: Grid, before: Grid) -> Places:
    """The places that a convolution's kernel covers when it stands at those that are asked for."""
    found = np.zeros((before.rows, before.columns), dtype=bool)
    rows, columns = np.divmod(np.flatnonzero(asked), after.columns)
    (high, wide), (down, across) = convolution.kernel_size, convolution.stride
    above, left = (int(n) for n in convolution.padding)
    for y, x in np.ndindex(high, wide):
        row, column = rows * down - above + y, columns * across - left + x
        inside = (row >= 0) & (row < before.rows) & (column >= 0) & (column < before.columns)
        found[row[inside], column[inside]] = True
    return found.ravel()


def _placed(ran: Ran, asked: Places, name: str, layer: PlacedLayer) -> Places:
    """Neighbours by a convolution, then those of the window or all, then neighbours again; read backwards."""
    grid, around = ran.grids[layer], ran.maps[name].mask.grid
    near = seen_by_convolution(asked, layer.feed_forward_positions.map, grid, grid)
    cut = None
    if isinstance(layer, WindowLayer) and around is not None and around != grid:  # filled up with what is no input
        real = np.zeros((around.rows, around.columns), dtype=bool)
        real[: grid.rows, : grid.columns] = True
        cut = real.ravel()
    seen = ran.looks(name, near, cut)
    return seen_by_convolution(seen | near, layer.attention_positions.map, grid, grid)
