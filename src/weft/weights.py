"""Weight tables: the tensors of another program's file ⇄ ours, total and reversible.

    TABLE = WeightTable(
        Row("h.{layer}.ln_1.weight", "layers.{layer}.attention_residual.norm.weight"),
        Row("h.{layer}.attn.c_attn.weight", ("layers.{layer}.attention.query.weight", ...), transposed=True),
        Ignored("h.{layer}.attn.bias"),
    )
    state = TABLE.read(their_tensors, our_shapes);   their_tensors = TABLE.write(state)

Total: a foreign tensor that no row reads, or a parameter of ours that no row fills, is an error that
names it. Reversible: writing is the same table backwards.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from weft.errors import WeightsError


@dataclass(frozen=True)
class Change:
    """What is done to the numbers of a foreign tensor on the way in, and what undoes it bit for bit."""

    read: Callable[[Tensor], Tensor]
    write: Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Row:
    """One foreign tensor and the one or several of ours it becomes.

    `{layer}` (or any name in braces) stands for a number, the same on both sides. Several of ours lie
    one after the other along the first axis of the foreign tensor. `transposed`: the foreign program
    stores (inputs, outputs) where `nn.Linear` stores (outputs, inputs). `change`: the numbers differ too.
    `ones`: how many axes of length 1 stand there before and behind those of ours.
    """

    foreign: str
    ours: str | tuple[str, ...]
    transposed: bool = False
    change: Change | None = None
    ones: tuple[int, int] = (0, 0)

    @property
    def targets(self) -> tuple[str, ...]:
        return (self.ours,) if isinstance(self.ours, str) else self.ours

    def turn(self, tensor: Tensor) -> Tensor:
        """Transposed where the row says so; vectors (biases) have nothing to turn."""
        if not self.transposed or tensor.dim() < 2:
            return tensor
        if tensor.dim() > 2:
            raise WeightsError(f"{self.foreign!r} has {tensor.dim()} axes", expected="a matrix or a vector")
        return tensor.t()

    def squeeze(self, tensor: Tensor) -> Tensor:
        """Without the axes of length 1 that ours has not; as it is where they are not all there."""
        before, end = self.ones[0], tensor.dim() - self.ones[1]
        if end < before or any(size != 1 for size in (*tensor.shape[:before], *tensor.shape[end:])):
            return tensor
        return tensor.reshape(tensor.shape[before:end])

    def unsqueeze(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Our shape with these axes."""
        return (1,) * self.ones[0] + shape + (1,) * self.ones[1]


@dataclass(frozen=True)
class Tied:
    """A foreign tensor that must equal another one where it is stored at all; never written."""

    foreign: str
    same_as: str


@dataclass(frozen=True)
class Computed:
    """A foreign tensor whose numbers we compute ourselves: where it is stored they must be these; never written.

    `near` is how far half precision may have rounded them.
    """

    foreign: str
    shape: tuple[int, ...]
    numbers: Callable[[], Tensor]
    near: float = 0.01


@dataclass(frozen=True)
class Ignored:
    """A foreign tensor that carries nothing learned (a stored mask, say); never written."""

    foreign: str


AnyRow = Row | Tied | Computed | Ignored


class WeightTable:
    """The rows of one foreign converter; `read` and `write` are each other's inverse."""

    def __init__(self, *rows: AnyRow) -> None:
        self.rows = rows
        names = [row.foreign for row in rows]
        for row in rows:
            others = row.targets if isinstance(row, Row) else (row.same_as,) if isinstance(row, Tied) else ()
            if names.count(row.foreign) > 1 or len(set(others)) != len(others):
                raise WeightsError(f"row {row.foreign!r} is not unique", expected="one row for each tensor")
            if any(_placeholders(other) != _placeholders(row.foreign) for other in others):
                raise WeightsError(f"row {row.foreign!r}", expected="the same {names} on both sides")

    def __repr__(self) -> str:
        return f"WeightTable({len(self.rows)} rows)"

    def read(self, foreign: Mapping[str, Tensor], shapes: Mapping[str, Sequence[int]]) -> dict[str, Tensor]:
        """Our state dict from their tensors; `shapes` is what our model expects under each name.

        With tensors on the `meta` device only names and shapes are checked, and nothing is allocated.
        """
        ours: dict[str, Tensor] = {}
        for name, tensor in foreign.items():
            row, numbers = self._row_for(name)
            if isinstance(row, Tied):
                _check_tied(foreign, name, row.same_as.format(**numbers))
            elif isinstance(row, Computed):
                _check_computed(row, name, tensor)
            elif isinstance(row, Row):
                targets = [target.format(**numbers) for target in row.targets]
                _refuse([t for t in targets if t not in shapes], f"{name!r} fills", "not in this model")
                for target, part in zip(targets, _split(row, name, tensor, targets, shapes), strict=True):
                    if target in ours:
                        raise WeightsError(f"{name!r} and another tensor both fill {target!r}")
                    ours[target] = part
        _refuse([name for name in shapes if name not in ours], "nothing in the file fills")
        return ours

    def write(self, ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Their tensors from our state dict: the same table backwards."""
        foreign: dict[str, Tensor] = {}
        used: set[str] = set()
        for row in self.rows:
            if not isinstance(row, Row):
                continue
            for numbers in _numbers_of(row.targets[0], ours):
                targets = [target.format(**numbers) for target in row.targets]
                _refuse([t for t in targets if t not in ours], f"row {row.foreign!r} needs")
                whole = torch.cat([ours[t] for t in targets]) if len(targets) > 1 else ours[targets[0]]
                whole = whole if row.change is None else row.change.write(whole)
                whole = row.turn(whole).contiguous()
                foreign[row.foreign.format(**numbers)] = whole.reshape(row.unsqueeze(tuple(whole.shape)))
                used.update(targets)
        _refuse([name for name in ours if name not in used], "no row of the table writes")
        return foreign

    def carries(self, name: str) -> bool:
        """Whether a foreign tensor becomes one of ours, or repeats one that does."""
        return not isinstance(self._row_for(name)[0], Ignored)

    def _row_for(self, name: str) -> tuple[AnyRow, dict[str, str]]:
        for row in self.rows:
            if match := _pattern(row.foreign).fullmatch(name):
                return row, match.groupdict()
        raise WeightsError(f"the file holds a tensor {name!r} that this model has no place for")


def _placeholders(template: str) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", template))


def _pattern(template: str) -> re.Pattern[str]:
    """`h.{layer}.x` as a regular expression; a name used twice must be the same number both times."""
    seen: set[str] = set()
    pieces: list[str] = []
    for i, piece in enumerate(re.split(r"\{(\w+)\}", template)):
        if i % 2 == 0:
            pieces.append(re.escape(piece))
        else:
            pieces.append(rf"(?P={piece})" if piece in seen else rf"(?P<{piece}>0|[1-9]\d*)")
            seen.add(piece)
    return re.compile("".join(pieces))


def _numbers_of(template: str, names: Mapping[str, Tensor]) -> list[dict[str, str]]:
    pattern = _pattern(template)
    return [match.groupdict() for name in names if (match := pattern.fullmatch(name))]


def _refuse(names: Sequence[str], before: str, after: str = "") -> None:
    """Raise if there are such names, with the first of them in a sentence."""
    if names:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        raise WeightsError(f"{before} {names[0]!r}{more}{', ' + after if after else ''}")


def _check_tied(foreign: Mapping[str, Tensor], name: str, other: str) -> None:
    if other not in foreign:
        raise WeightsError(f"{name!r} is there and {other!r}, which it repeats, is missing")
    shapes_differ = foreign[name].shape != foreign[other].shape
    if shapes_differ or not (foreign[name].is_meta or torch.equal(foreign[name], foreign[other])):
        raise WeightsError(f"{name!r} differs from {other!r}", expected="equal tensors: this model ties the two")


def _check_computed(row: Computed, name: str, tensor: Tensor) -> None:
    if tuple(tensor.shape) != row.shape:
        raise WeightsError(f"{name!r} has shape {tuple(tensor.shape)}", expected=str(row.shape))
    if not tensor.is_meta and not bool(((tensor - row.numbers()).abs() <= row.near).all()):  # a NaN is not near
        raise WeightsError(f"{name!r} holds other numbers than this model computes there")


def _split(
    row: Row, name: str, tensor: Tensor, targets: Sequence[str], shapes: Mapping[str, Sequence[int]]
) -> list[Tensor]:
    """The foreign tensor cut into parts of the shapes that our parameters have."""
    wanted = [tuple(shapes[target]) for target in targets]
    whole = row.turn(row.squeeze(tensor))
    stacked = wanted[0] if len(wanted) == 1 else (sum(shape[0] for shape in wanted), *wanted[0][1:])
    if tuple(whole.shape) != stacked or any(shape[1:] != stacked[1:] for shape in wanted):
        given = f"{name!r} has shape {tuple(tensor.shape)}"
        theirs = tuple(reversed(stacked)) if row.transposed else row.unsqueeze(stacked)
        raise WeightsError(given, expected=f"{theirs} for {', '.join(targets)}")
    whole = whole if row.change is None else row.change.read(whole)
    if len(wanted) == 1:
        return [whole.contiguous()]
    parts = torch.split(whole, [shape[0] for shape in wanted])
    return [part.clone(memory_format=torch.contiguous_format) for part in parts]
