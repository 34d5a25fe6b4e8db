"""Roles: what the weights of a model are for. A block declares the roles of its own weights, and a class that holds a
plain module of torch, or a bare parameter, declares the role of that.

A class has `role`, the role of what is inside its modules, or `roles`, those of its children and parameters by name,
or both. A weight has the role declared nearest to it. A weight without a role is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, Protocol, runtime_checkable

from torch import Tensor, nn

from weft.errors import WeightsError

Group = Literal["embeddings", "matrices", "head", "vectors"]
"""Optimizer groups: embedding tables; matrices between states; heads; and vectors, the others."""


@dataclass(frozen=True)
class Role:
    """What weights are for.

    part    the name that users see
    group   how they learn; of "matrices", what is no matrix (biases, channels that are not mixed) is "vectors"
    stands  where: at the "input", of which it makes vectors; in the "trunk"; "exchanged", with the task or the
            attention kind that it belongs to; or with its "labels", one row for each
    """

    part: str
    group: Group
    stands: Literal["input", "trunk", "exchanged", "labels"] = "trunk"

    def group_of(self, weight: Tensor) -> Group:
        """The group of one weight of this role."""
        mixes = weight.dim() == 2 or (weight.dim() == 4 and weight.shape[1] > 1)
        return self.group if self.group != "matrices" or mixes else "vectors"


TOKENS = Role("token table", "embeddings", "input")
SEGMENTS = Role("segments", "embeddings", "input")
POSITIONS = Role("positions", "embeddings", "input")
PATCH_POSITIONS = Role("positions", "vectors", "input")
NEIGHBOURS = Role("positions", "vectors")  # convolutions over the neighbouring places
PATCHES = Role("convolutions", "matrices", "input")
PATCH_NORM = Role("norms", "vectors", "input")
CLASS_TOKEN = Role("class token", "vectors", "input")
ATTENTION_MAPS = Role("attention maps", "matrices")
ATTENTION_SCORES = Role("attention scores", "matrices", "exchanged")
CROSS_MAPS = Role("cross-attention maps", "matrices")
CROSS_SCORES = Role("cross-attention scores", "matrices", "exchanged")
FEED_FORWARD = Role("feed-forward", "matrices")
CONVOLUTIONS = Role("convolutions", "matrices")
GATES = Role("recurrent gates", "matrices")
FIRST_STATES = Role("recurrent gates", "vectors")  # a map beside the layers: it learns as the head does
NORMS = Role("norms", "vectors")
LAYER_SCALE = Role("layer scale", "vectors")
HEAD = Role("head", "head")  # of a model that has one for every task
TASK_HEAD = Role("head", "head", "exchanged")
LABEL_HEAD = Role("head", "head", "labels")  # a row for each label: for other labels it means nothing

CROSS_ROLES = {ATTENTION_MAPS: CROSS_MAPS, ATTENTION_SCORES: CROSS_SCORES}
OF_TORCH: dict[type[nn.Module], Role] = dict.fromkeys((nn.LayerNorm, nn.RMSNorm, nn.GroupNorm, nn.BatchNorm2d), NORMS)


@runtime_checkable
class MapsByHead(Protocol):
    """A block whose matrices are several maps side by side, each of which learns as a matrix of its own."""

    def maps_by_head(self) -> dict[Tensor, int]:
        """How many heads (or gates) the rows (+) or columns (−) of each matrix belong to."""
        ...


def by_name(**roles: Role) -> Mapping[str, Role]:
    """Roles of children and parameters, by their names."""
    return roles


def module_roles(model: nn.Module) -> dict[str, Role | None]:
    """The role of what is inside each module, by its name; None where there is none, as of a whole layer."""
    return {name: role for name, _, role in _walk("", model, _own(type(model)))}


def weight_roles(model: nn.Module) -> dict[str, Role]:
    """The role of each weight, by its name; one that two modules share has that of the first."""
    found = {
        f"{name}.{last}" if name else last: _inside(role, _said(type(module)).get(last))
        for name, module, role in _walk("", model, _own(type(model)))
        for last, _ in module.named_parameters(recurse=False)
    }
    roles = {}
    for name, _ in model.named_parameters():
        role = found[name]
        if role is None:
            raise WeightsError(
                f"the weight {name!r} of {type(model).__name__} has no role",
                expected="a role from weft.blocks.roles",
                advice="set `role` in the class of its module, or `roles` in the class that holds it",
            )
        roles[name] = role
    return roles


def _walk(name: str, module: nn.Module, role: Role | None) -> Iterator[tuple[str, nn.Module, Role | None]]:
    yield name, module, role
    said = _said(type(module))
    for last, child in module.named_children():
        inner = _inside(role, said.get(last) or _own(type(child)))
        yield from _walk(f"{name}.{last}" if name else last, child, inner)


def _inside(outer: Role | None, own: Role | None) -> Role | None:
    """What a role is inside another: scores of a cross-attention, or the norm of a head, which is exchanged with it."""
    if outer is None or own is None:
        return own or outer
    if outer in CROSS_ROLES.values():
        own = CROSS_ROLES.get(own, own)
    return replace(own, stands=outer.stands) if own.stands == "trunk" else own


def _own(kind: type[nn.Module]) -> Role | None:
    role: Role | None = getattr(kind, "role", None)
    return role or next((role for known, role in OF_TORCH.items() if issubclass(kind, known)), None)


def _said(kind: type[nn.Module]) -> Mapping[str, Role]:
    """The roles of the class, not of the module: a child may have any name, `roles` too."""
    return {name: role for base in reversed(kind.__mro__) for name, role in vars(base).get("roles", {}).items()}
