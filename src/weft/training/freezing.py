"""Which parts of a model do not learn."""

from __future__ import annotations

import re
from typing import Literal

from torch import nn

from weft.errors import ConfigError

Frozen = int | Literal["embeddings"] | None
EMBEDDINGS = ("tokens.", "segments.", "position.")


def freeze(model: nn.Module, what: Frozen) -> None:
    """Nothing (None), the tables of tokens, segments and positions ("embeddings"), or those and the first n layers."""
    if what is None:
        return
    count = 0 if what == "embeddings" else what
    layers = {int(match[1]) for name, _ in model.named_parameters() if (match := re.match(r"layers\.(\d+)\.", name))}
    if count > len(layers):
        raise ConfigError(f"freeze = {count}", expected=f"at most {len(layers)}, the layers of this model")
    prefixes = (*EMBEDDINGS, *(f"layers.{layer}." for layer in range(count)))
    for name, p in model.named_parameters():
        if name.startswith(prefixes):
            p.requires_grad_(False)
    if not any(p.requires_grad for p in model.parameters()):
        raise ConfigError(f"freeze = {what!r} leaves nothing to learn", expected="fewer frozen layers")
