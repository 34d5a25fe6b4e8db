"""Reach in whole models: which inputs the state at a position can have seen after each layer.

The inputs are the vectors that go into the first layer: of tokens, of patches, of places. Which layers there are and
what each sees, the model says (`Model.reach_stacks`); who sees whom then stands in `reach_steps.py`. Here the sets are
followed from a position back to the inputs, and the same is measured by gradients.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from weft.analysis.capturing import capture
from weft.analysis.reach import DIRECTIONS, Reach, has_gradient, one_place
from weft.analysis.reach_steps import Places, Ran, either, place_after, seen_through, sees_ahead
from weft.blocks.attention.base import Grid
from weft.cost.flops import NoNumbers
from weft.errors import ConfigError
from weft.models.base import Model
from weft.models.images import ImageModel
from weft.models.sites import ReachStack, attentions

Call = Callable[[nn.Module, int], Any]  # runs the model on inputs that are drawn by this seed
HELD = (
    "Statistics of group norms are held: through them each place hears, a little, of the whole image from the first "
    "layer on."
)


def model_reach(
    model: Model,
    call: Call,
    position: int | None,
    *,
    part: str | None = None,
    measure: bool = True,
    hold: bool = True,
) -> Reach:
    """`call(model, seed)` runs it on some input; `position` None: the last where no state sees ahead, else the middle;
    `part`: the "encoder" or "decoder" of a model that has both.

    Gradients are measured on a copy in float64, for several inputs and directions; without `measure`, a model without
    numbers, on torch's meta device, will do. `hold`: what all places of an image share by the statistics of a group
    norm is left aside, so that the view of the convolutions is seen.
    """
    work = copy.deepcopy(model).eval().requires_grad_(False)
    if measure:
        work = work.double()
    norms = [block for block in work.modules() if isinstance(block, nn.GroupNorm)]
    for norm in norms if hold else ():
        norm.forward = functools.partial(_held_norm, norm)  # type: ignore[method-assign]
    stacks = work.reach_stacks(part)
    with torch.random.fork_rng(devices=[]):
        ran = recorded(work, call, stacks, 0)
        ran.held = hold
        length = int(ran.inputs[-1].shape[1])
        grid = ran.grids.get(stacks[-1].layers[0].module, ran.image)
        if position is None:
            position = _middle(length, grid) if sees_ahead(ran, stacks[-1]) else -1
        begin = at = _place(position, length)
        at = length - 1 - at if stacks[-1].turned else at
        places = [at := place_after(ran, layer, at) for layer in stacks[-1].layers]
        predicted = np.stack([seen_after(stacks, ran, layer, place) for layer, place in enumerate(places)])
        measured = _measured(work, call, stacks, places) if measure else None
    sources = int(ran.inputs[0].shape[1]) if len(stacks) > 1 else 0
    names = tuple(layer.name for layer in stacks[-1].layers)
    return Reach(begin, names, predicted, measured, grid, sources, HELD if norms and hold else stacks[-1].note)


def reach_as_said(model: Model, length: int, position: int | None) -> Reach:
    """Of a model that is not run and has no gradients, a table of counts: what it says of itself, for the last position
    or this one."""
    (stack,) = model.reach_stacks()
    inputs = torch.empty(1, length, 0)
    ran = Ran([inputs], [[inputs for _ in stack.layers]])
    at = _place(-1 if position is None else position, length)
    predicted = np.stack([seen_after([stack], ran, number, at) for number in range(len(stack.layers))])
    return Reach(at, tuple(layer.name for layer in stack.layers), predicted, note=stack.note)


def seen_after(stacks: Sequence[ReachStack], ran: Ran, layer: int, place: int) -> Places:
    """Which inputs, of all stacks one after the other, the state at this place of the last stack has seen after this
    layer: followed back from there, and from what it read across through the stack before."""
    states = ran.states[-1][layer]
    asked_after = {layer: one_place(place, int(states.shape[1]))}
    parts: list[Places] = []
    for stack, given in reversed(list(zip(stacks, ran.inputs, strict=True))):
        asked, across = None, dict[int, Places]()
        for number, step in reversed(list(enumerate(stack.layers))):
            asked = either(asked, asked_after.get(number))
            if asked is None:
                continue
            asked, read = seen_through(ran, step, asked)
            if read is not None:
                memory = step.memory % len(stacks[0].layers)
                across[memory] = read | across.get(memory, np.zeros_like(read))
        found = np.zeros(given.shape[1], dtype=bool) if asked is None else asked
        parts.append(found[::-1] if stack.turned else found)
        asked_after = across
    return np.concatenate(parts[::-1])


def recorded(model: nn.Module, call: Call, stacks: Sequence[ReachStack], seed: int) -> Ran:
    """Run it once. Gradients begin anew at the vectors that go into each stack."""
    ran = Ran(states=[[] for _ in stacks], names={module: name for name, module in model.named_modules()})
    handles = []
    for stack, kept in zip(stacks, ran.states, strict=True):
        handles.append(stack.layers[0].module.register_forward_pre_hook(functools.partial(_begin, ran)))
        handles += [layer.module.register_forward_hook(functools.partial(_keep, ran, kept)) for layer in stack.layers]
    if isinstance(model, ImageModel):
        handles.append(model.register_forward_pre_hook(functools.partial(_look, ran)))
    try:
        with NoNumbers():
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


def _look(ran: Ran, model: ImageModel, given: tuple[Tensor, ...]) -> None:
    ran.image = model.place_grids(*given[0].shape[2:])[0]


def _begin(ran: Ran, _: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
    rows, grid = _rows(given[0])
    leaf = rows.detach().requires_grad_()
    ran.inputs.append(leaf)
    image = leaf if grid is None else leaf.transpose(1, 2).reshape(len(leaf), -1, grid.rows, grid.columns)
    return image, *given[1:]


def _keep(ran: Ran, kept: list[Tensor], module: nn.Module, given: tuple[Any, ...], output: Any) -> None:
    """The states, and where they stand: a grid comes along as an argument, or is the shape of a map of channels."""
    outputs = output if isinstance(output, tuple) else (output,)
    states, after = _rows(outputs[0])
    kept.append(states)
    before = _rows(given[0])[1] or next((one for one in given if isinstance(one, Grid)), None)
    if before is not None:
        ran.grids[module] = before
        ran.grids_after[module] = after or next((one for one in outputs if isinstance(one, Grid)), before)


def _rows(states: Tensor) -> tuple[Tensor, Grid | None]:
    """A map of channels (B, D, Y, X) as one state for each place, and its grid; others are that already."""
    if states.dim() < 4:
        return states, None
    return states.flatten(2).transpose(1, 2), Grid(*states.shape[2:])


def _measured(model: nn.Module, call: Call, stacks: Sequence[ReachStack], places: Sequence[int]) -> np.ndarray:
    """By gradients: what has ever one that is not zero, over several inputs and directions."""
    found: list[np.ndarray] = []
    for seed in range(DIRECTIONS):
        torch.manual_seed(seed)
        ran = recorded(model, call, stacks, seed)
        rows = [
            has_gradient([state], ran.inputs, place)[0] for state, place in zip(ran.states[-1], places, strict=True)
        ]
        found.append(np.stack(rows))
    measured: np.ndarray = np.any(found, axis=0)
    if stacks[0].turned:
        source = ran.inputs[0].shape[1]
        measured[:, :source] = measured[:, :source][:, ::-1].copy()
    return measured


def _held_norm(norm: nn.GroupNorm, x: Tensor) -> Tensor:
    """A group norm whose mean and variance are numbers, through which no gradient passes."""
    groups = x.reshape(len(x), norm.num_groups, -1, *x.shape[2:])
    axes = tuple(range(2, groups.dim()))
    mean, variance = groups.detach().mean(axes, keepdim=True), groups.detach().var(axes, correction=0, keepdim=True)
    shape = (1, -1, *[1] * (x.dim() - 2))
    same: Tensor = ((groups - mean) * (variance + norm.eps).rsqrt()).flatten(1, 2)
    return same if norm.weight is None else same * norm.weight.view(shape) + norm.bias.view(shape)


def _middle(length: int, grid: Grid | None) -> int:
    if grid is None:
        return length // 2
    return length - grid.places + grid.rows // 2 * grid.columns + grid.columns // 2


def _place(position: int, length: int) -> int:
    if not -length <= position < length:
        raise ConfigError(f"position {position} of {length}", expected=f"from 0 to {length - 1}, or -1 for the last")
    return position % length
