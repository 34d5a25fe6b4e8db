"""Named sizes of all families: `preset("gpt2")`."""

from __future__ import annotations

from typing import Any

from weft.errors import ConfigError, did_you_mean
from weft.models import bert, convnext, davit, gpt, resnet, rnn, t5, transformer, vit

FAMILIES: dict[str, dict[str, dict[str, Any]]] = {
    "gpt": gpt.PRESETS,
    "bert": bert.PRESETS,
    "transformer": transformer.PRESETS,
    "t5": t5.PRESETS,
    "vit": vit.PRESETS,
    "davit": davit.PRESETS,
    "convnext": convnext.PRESETS,
    "resnet": resnet.PRESETS,
    "rnn": rnn.PRESETS,
    "gru": rnn.PRESETS,
    "lstm": rnn.PRESETS,
}
PRESETS: dict[str, tuple[str, dict[str, Any]]] = {
    name: (family, fields) for family, sizes in FAMILIES.items() for name, fields in sizes.items()
}


def preset(name: str) -> tuple[str, dict[str, Any]]:
    """Family and fields of a named size; a family's own name is its laptop default, sized by the plan."""
    if name in FAMILIES:
        return name, {}
    if name not in PRESETS:
        raise ConfigError(f"unknown model {name!r}", advice=did_you_mean(name, [*FAMILIES, *PRESETS]))
    return PRESETS[name]
