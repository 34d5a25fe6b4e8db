"""Which parts of a model do not learn."""

from __future__ import annotations

from typing import Literal

from weft.blocks.roles import weight_roles
from weft.errors import ConfigError
from weft.models.base import Model

Frozen = int | Literal["embeddings"] | None


def freeze(model: Model, what: Frozen) -> None:
    """Nothing (None), what makes vectors of the input ("embeddings"), or that and the first n layers.

    These are the tables of tokens, segments and positions, or the map of patches with its stem. Layers are counted
    through all stages of a model of images, and in an encoder and a decoder each from the first.
    """
    if what is None:
        return
    count = 0 if what == "embeddings" else what
    stacks = [stack.layers for stack in model.layers_in_order()]
    most = max(map(len, stacks), default=0)
    if count > most:
        raise ConfigError(f"freeze = {count}", expected=f"at most {most}, the layers of this model")
    parameters = dict(model.named_parameters())
    for name, role in weight_roles(model).items():
        if role.stands == "input":
            parameters[name].requires_grad_(False)
    for layers in stacks:
        for site in layers[:count]:
            for module in (*site.before, site.module):
                module.requires_grad_(False)
    if not any(p.requires_grad for p in parameters.values()):
        raise ConfigError(f"freeze = {what!r} leaves nothing to learn", expected="fewer frozen layers")
