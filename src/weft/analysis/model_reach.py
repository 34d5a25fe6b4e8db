"""Reach in whole models: which inputs the state at a position can have seen after each layer.

The inputs are the vectors that go into the first layer: of tokens, of patches, of places. Each family says here what
its layers are; who sees whom in them follows from the attention that ran, and for convolutions and recurrence from what
they are.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from weft.analysis import AttentionMap, capture
from weft.analysis.capturing import attentions
from weft.analysis.reach import DIRECTIONS, Reach, Seen, allowed_pairs, has_gradient
from weft.blocks.attention.base import Grid
from weft.blocks.layer import JointLayer, TransformerLayer
from weft.blocks.recurrent import BothWays, RecurrentLayer
from weft.errors import ConfigError, UnsupportedError
from weft.models.davit import DaViT, PlacedLayer, Shrink, WindowLayer
from weft.models.encoder_decoder import EncoderDecoder
from weft.models.vit import ViT

Call = Callable[[nn.Module, int], Any]  # runs the model on inputs that are drawn by this seed
CAN = "a gpt, bert, vit, davit, transformer, t5, rnn, gru or lstm"


@dataclass
class Ran:
    """What was seen of a model while it ran: the vectors that went into each stack of layers, the states after each
    layer, the attention, and the grids on which the layers stood."""

    inputs: list[Tensor] = field(default_factory=list)
    states: list[list[Tensor]] = field(default_factory=list)
    maps: Mapping[str, AttentionMap] = field(default_factory=dict)
    grids: dict[nn.Module, Grid] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Step:
    """A layer of a model.

    pattern  (ran, states before) → what its states see of those before
    across   → what they see of another stream, the states after its layer `memory` (−1: the last)
    place    where a position stands after it
    """

    name: str
    module: nn.Module
    pattern: Callable[[Ran, int], Seen]
    across: Callable[[Ran], Seen] | None = None
    memory: int = -1
    place: Callable[[Ran, int], int] = lambda _, place: place


def model_reach(model: nn.Module, call: Call, position: int, *, part: str | None = None, measure: bool = True) -> Reach:
    """`call(model, seed)` runs it on some input; `part`: the "encoder" or "decoder" of a model that has both.

    Gradients are measured on a copy in float64, for several inputs and directions.
    """
    work = copy.deepcopy(model).eval().requires_grad_(False)
    work = work.double() if measure else work
    stacks = stacks_of(work, part)
    with torch.random.fork_rng(devices=[]):
        ran = recorded(work, call, stacks, 0)
        length = int(ran.inputs[-1].shape[1])
        begin = at = _place(position, length)
        places = [at := step.place(ran, at) for step in stacks[-1]]
        predicted = _predicted(stacks, ran, places)
        measured = np.zeros_like(predicted) if measure else None
        for seed in range(DIRECTIONS if measured is not None else 0):
            torch.manual_seed(seed)
            again = recorded(work, call, stacks, seed)
            for number, state in enumerate(again.states[-1]):
                measured[number] |= has_gradient([state], again.inputs, places[number])[0]  # type: ignore[index]
    sources = int(ran.inputs[0].shape[1]) if len(stacks) > 1 else 0
    names = tuple(step.name for step in stacks[-1])
    return Reach(begin, names, predicted, measured, _grid(work, ran, stacks), sources)


def recorded(model: nn.Module, call: Call, stacks: Sequence[Sequence[Step]], seed: int) -> Ran:
    """Run it once. Gradients begin anew at the vectors that go into each stack."""
    ran = Ran(states=[[] for _ in stacks])
    handles = []

    def begin(_: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
        ran.inputs.append(given[0].detach().requires_grad_())
        return ran.inputs[-1], *given[1:]

    def keeper(kept: list[Tensor]) -> Callable[..., None]:
        def keep(module: nn.Module, given: tuple[Any, ...], output: Any) -> None:
            kept.append(output[0] if isinstance(output, tuple) else output)
            for grid in given:
                if isinstance(grid, Grid):
                    ran.grids[module] = grid

        return keep

    for stack, kept in zip(stacks, ran.states, strict=True):
        handles.append(stack[0].module.register_forward_pre_hook(begin))
        handles += [step.module.register_forward_hook(keeper(kept)) for step in stack]
    try:
        if attentions(model):
            with capture(model) as maps:
                call(model, seed)
            ran.maps = maps
        else:
            call(model, seed)
    finally:
        for handle in handles:
            handle.remove()
    return ran


def _place(position: int, length: int) -> int:
    if not -length <= position < length:
        raise ConfigError(f"position {position} of {length}", expected=f"from 0 to {length - 1}, or -1 for the last")
    return position % length


def _predicted(stacks: Sequence[Sequence[Step]], ran: Ran, places: list[int]) -> Seen:
    """Boolean products through all stacks; the columns are the inputs of all of them, one after the other."""
    lengths = [int(x.shape[1]) for x in ran.inputs]
    before: list[np.ndarray] = []
    for number, (stack, length) in enumerate(zip(stacks, lengths, strict=True)):
        seen = np.zeros((length, sum(lengths)), dtype=bool)
        seen[:, sum(lengths[:number]) :][:, :length] = np.eye(length, dtype=bool)
        after = []
        for step in stack:
            seen = _product(step.pattern(ran, len(seen)), seen)
            if step.across is not None:
                seen = seen | _product(step.across(ran), before[step.memory])
            after.append(seen)
        before = after
    return np.stack([seen[place] for seen, place in zip(before, places, strict=True)])


def _product(pattern: Seen, seen: np.ndarray) -> np.ndarray:
    found: np.ndarray = (pattern.astype(np.float32) @ seen.astype(np.float32)) > 0
    return found


# -- what the layers of a family are ----------------------------------------------------------


def stacks_of(model: nn.Module, part: str | None = None) -> list[list[Step]]:
    """The layers whose states are asked for come last; those of a stack that is read before come first."""
    if isinstance(model, EncoderDecoder):
        return _pair_stacks(model, part or "decoder")
    if part is not None:
        raise ConfigError(f"the {part} of a {type(model).__name__}", expected="no part: it has one stack of layers")
    if isinstance(model, DaViT):
        return [list(_davit_steps(model))]
    layers = getattr(model, "layers", None)
    if not isinstance(layers, nn.ModuleList) or not len(layers):
        raise UnsupportedError(f"the reach of a {type(model).__name__}", expected=CAN)
    return [[_step(f"layers.{n}", layer, n) for n, layer in enumerate(layers)]]


def _step(name: str, layer: nn.Module, number: int) -> Step:
    if isinstance(layer, TransformerLayer):
        return Step(str(number + 1), layer, functools.partial(_looks, name=f"{name}.attention"))
    if isinstance(layer, RecurrentLayer | BothWays):
        both = isinstance(layer, BothWays)
        return Step(str(number + 1), layer, functools.partial(_recurrent, both_ways=both))
    raise UnsupportedError(f"the reach of a {type(layer).__name__}", expected=CAN)


def _pair_stacks(model: EncoderDecoder, part: str) -> list[list[Step]]:
    if part not in ("encoder", "decoder"):
        raise ConfigError(f"part {part!r}", expected="encoder or decoder")
    encoder = [_step(f"encoder.layers.{n}", layer, n) for n, layer in enumerate(model.encoder.layers)]
    if part == "encoder":
        return [encoder]
    decoder = []
    for n, layer in enumerate(model.decoder.layers):
        own, across = f"decoder.layers.{n}.attention", f"decoder.layers.{n}.cross_attention"
        if isinstance(layer, JointLayer):
            across = own
        memory = n if model.memory_from == "same" else -1
        looks = functools.partial(_looks, name=own)
        decoder.append(Step(str(n + 1), layer, looks, functools.partial(_across, name=across), memory))
    return [encoder, decoder]


def _looks(ran: Ran, length: int, name: str) -> Seen:
    """By attention, and itself by the residual; of a table that begins with a memory's keys, the last ones."""
    return allowed_pairs(ran.maps[name])[:, -length:] | np.eye(length, dtype=bool)


def _across(ran: Ran, name: str) -> Seen:
    """The memory's keys: all of the table, or its beginning."""
    return allowed_pairs(ran.maps[name])[:, : ran.inputs[0].shape[1]]


def _recurrent(_: Ran, length: int, *, both_ways: bool) -> Seen:
    """All that came before; or all, if there is someone who reads from the end."""
    square = np.ones((length, length), dtype=bool)
    return square if both_ways else np.tril(square)


def _davit_steps(model: DaViT) -> Iterator[Step]:
    """Each half of a layer is a step: convolutions around attention in windows, then around attention of channels."""
    for number, stage in enumerate(model.stages):
        told, name = f"stage {number + 1}", f"stages.{number}"
        shrink = stage.shrink
        if isinstance(shrink, Shrink):
            joins = functools.partial(_joined_place, shrink=shrink)
            yield Step(f"{told}: shrunk", shrink, functools.partial(_shrunk, shrink=shrink), place=joins)
        for n, layer in enumerate(stage.layers):  # type: ignore[arg-type]
            for half, word in (("spatial", "windows"), ("channel", "channels")):
                module = getattr(layer, half)
                pattern = functools.partial(_placed, name=f"{name}.layers.{n}.{half}.attention", layer=module)
                yield Step(f"{told}: {word} {n + 1}", module, pattern)


def _placed(ran: Ran, length: int, name: str, layer: PlacedLayer) -> Seen:
    """Neighbours by a convolution, then those of the window or all, then neighbours again."""
    grid, found = ran.grids[layer], ran.maps[name]
    pattern = allowed_pairs(found)
    around = found.mask.grid
    if isinstance(layer, WindowLayer) and around is not None:  # filled up with places that are no input
        real = np.arange(around.places).reshape(around.rows, around.columns)[: grid.rows, : grid.columns].ravel()
        pattern = pattern[np.ix_(real, real)]
    near = _neighbours(grid, layer.attention_positions.map.kernel_size[0] // 2)
    later = _neighbours(grid, layer.feed_forward_positions.map.kernel_size[0] // 2)
    return _product(later, _product(pattern | np.eye(length, dtype=bool), near))


def _neighbours(grid: Grid, distance: int) -> Seen:
    rows, columns = np.divmod(np.arange(grid.places), grid.columns)
    apart = np.maximum(abs(rows[:, None] - rows), abs(columns[:, None] - columns))
    found: Seen = apart <= distance
    return found


def _shrunk(ran: Ran, length: int, shrink: Shrink) -> Seen:
    """A place of the smaller picture sees the places that it is made of."""
    joined = np.array([_joined_place(ran, place, shrink) for place in range(length)])
    found: Seen = np.arange(joined.max() + 1)[:, None] == joined
    return found


def _joined_place(ran: Ran, place: int, shrink: Shrink) -> int:
    grid = ran.grids[shrink]
    row, column = divmod(place, grid.columns)
    return row // shrink.stride * -(-grid.columns // shrink.stride) + column // shrink.stride


def _grid(model: nn.Module, ran: Ran, stacks: Sequence[Sequence[Step]]) -> Grid | None:
    """Of the inputs, if they are places of a picture."""
    if stacks[-1][0].module in ran.grids:
        return ran.grids[stacks[-1][0].module]
    grids = [found.mask.grid for found in ran.maps.values() if found.mask.grid is not None]
    if grids:
        return grids[0]
    places = int(ran.inputs[-1].shape[1]) - 1  # a class token comes first
    return Grid(*model.config.cells) if isinstance(model, ViT) and places == np.prod(model.config.cells) else None
