"""Which parts of a model do not learn."""

from __future__ import annotations

import re
from typing import Literal

from torch import nn

from weft.errors import ConfigError

Frozen = int | Literal["embeddings"] | None
EMBEDDING = re.compile(r"(source_)?tokens\.|segments\.|((en|de)coder\.)?position\.")
LAYER = re.compile(r"((?:en|de)coder\.)?layers\.(\d+)\.")


def freeze(model: nn.Module, what: Frozen) -> None:
    """Nothing (None), the tables of tokens, segments and positions ("embeddings"), or those and the first n layers
    (of an encoder and of a decoder)."""
    if what is None:
        return
    count = 0 if what == "embeddings" else what
    layers = {int(match[2]) for name, _ in model.named_parameters() if (match := LAYER.match(name))}
    if count > len(layers):
        raise ConfigError(f"freeze = {count}", expected=f"at most {len(layers)}, the layers of this model")
    for name, p in model.named_parameters():
        layer = LAYER.match(name)
        if EMBEDDING.match(name) or (layer is not None and int(layer[2]) < count):
            p.requires_grad_(False)
    if not any(p.requires_grad for p in model.parameters()):
        raise ConfigError(f"freeze = {what!r} leaves nothing to learn", expected="fewer frozen layers")
