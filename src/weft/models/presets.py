"""Named sizes of all families: `preset("gpt2")`."""

from __future__ import annotations

from typing import Any

from weft.errors import ConfigError, did_you_mean
from weft.models import gpt

PRESETS: dict[str, tuple[str, dict[str, Any]]] = {name: ("gpt", fields) for name, fields in gpt.PRESETS.items()}


def preset(name: str) -> tuple[str, dict[str, Any]]:
    """Family and fields of a named size; a family's own name is its laptop default, sized by the plan."""
    if name == "gpt":
        return "gpt", {}
    if name not in PRESETS:
        raise ConfigError(f"unknown model {name!r}", advice=did_you_mean(name, ["gpt", *PRESETS]))
    return PRESETS[name]
