"""Which part of a model a weight belongs to: the same words for every family, from the roles that blocks and families
say (`blocks/roles.py`)."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn

from weft.blocks.roles import module_roles, weight_roles


def parts_of_modules(model: nn.Module) -> dict[str, str]:
    """The part that each module is, or belongs to, by its name; "rest" is what leads from part to part."""
    return {name: "rest" if role is None else role.part for name, role in module_roles(model).items()}


def weights_by_part(model: nn.Module) -> Iterator[tuple[str, str, Tensor]]:
    """Each weight once, with its part and name; one that two parts share belongs to the first."""
    roles = weight_roles(model)
    for name, p in model.named_parameters():
        yield roles[name].part, name, p


def parameters_by_part(model: nn.Module) -> dict[str, int]:
    """How many numbers are learned or kept in each part, the largest first."""
    found: dict[str, int] = {}
    for part, _, p in weights_by_part(model):
        found[part] = found.get(part, 0) + p.numel()
    return dict(sorted(found.items(), key=lambda item: -item[1]))
