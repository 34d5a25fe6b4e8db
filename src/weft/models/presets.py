"""Named sizes of all families, and which families can be trained for which capability, from the registry.

preset("gpt2")              # family and fields of a named size
families_for(CausalLM)      # the families that can be trained for it
default_for(CausalLM)       # the default when no model is named
"""

from __future__ import annotations

from typing import Any

from weft.errors import ConfigError
from weft.index import check_model_name
from weft.models.base import ModelConfig
from weft.models.capabilities import Capability, CausalLM
from weft.models.sizing import Sizing


def presets() -> dict[str, tuple[str, dict[str, Any]]]:
    """All named sizes: family and fields."""
    families: dict[str, Any] = ModelConfig.registry
    return {name: (kind, dict(fields)) for kind, cls in families.items() for name, fields in cls.presets.items()}


def is_model(name: str) -> bool:
    """Whether it names a family or a size."""
    return name in ModelConfig.registry or name in presets()


def preset(name: str) -> tuple[str, dict[str, Any]]:
    """Family and fields of a named size; a family's own name is its laptop default, sized by the plan."""
    if name in ModelConfig.registry:
        return name, {}
    known = presets()
    check_model_name(name, ModelConfig.registry, known)
    return known[name]


def families_for(*capabilities: Capability) -> list[str]:
    """The families that can be trained for any of these, as the registry has them."""
    families: dict[str, Any] = ModelConfig.registry
    return [kind for kind, cls in families.items() if any(can in cls.learns for can in capabilities)]


def named(*capabilities: Capability) -> str:
    """These families in words: "convnext, davit, resnet or vit"."""
    *others, last = families_for(*capabilities)
    return f"{', '.join(others)} or {last}" if others else last


def default_for(capability: Capability) -> str:
    """The family that is the default for this capability."""
    found = [kind for kind in families_for(capability) if sizing_of(kind, capability).default]
    if len(found) != 1:
        given = f"{len(found)} families are the default for {capability.__name__}: {', '.join(found)}"
        raise ConfigError(given, expected="one that says `default=True`")
    return found[0]


def learns(kind: object, capability: Capability) -> bool:
    """Whether the family of this kind, which may come from a file, can be trained for it."""
    return isinstance(kind, str) and kind in families_for(capability)


def sizing_of(kind: str, capability: Capability) -> Sizing:
    """The sizes and training settings of a family for this capability."""
    cls: Any = ModelConfig.registry.find(kind)
    found: Sizing = cls.learns[capability]
    return found


def tiny_model() -> ModelConfig:
    """The settings of a very small model: the time of its step is nearly all overhead."""
    fields = {"vocab_size": 32, "width": 32, "depth": 2, "max_length": 16}
    return ModelConfig.from_config({"kind": default_for(CausalLM), **fields})
