"""Which part of a model a weight belongs to, by where it stands: the same words for every family."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch import Tensor, nn

HEADS = ("head", "masked", "classes", "pairs", "pooler", "readout", "output")
NORMS = (nn.LayerNorm, nn.RMSNorm, nn.GroupNorm, nn.BatchNorm2d)


def part_of(name: str, module: nn.Module) -> str:
    """The part that a module of this name (`layers.3.attention.query`) is, or belongs to."""
    words = [word for word in name.split(".") if not word.isdigit()]
    if isinstance(module, NORMS) or any(word.endswith("norm") for word in words):
        return "norms"
    if any(word in ("attention", "cross_attention") for word in words):
        across = "cross-attention" if "cross_attention" in words else "attention"
        return f"{across} scores" if "lookup" in words else f"{across} maps"
    if "feed_forward" in words:
        return "feed-forward"
    if any(re.fullmatch(r"(.*_)?positions?", word) for word in words):
        return "positions"
    if isinstance(module, nn.RNNBase) or words[:1] in (["decoder"], ["first"]):
        return "recurrent gates"
    if words and words[0] in HEADS:
        return "head"
    if isinstance(module, nn.Conv1d | nn.Conv2d):
        return "convolutions"
    if isinstance(module, nn.Embedding):
        return "segments" if words[-1:] == ["segments"] else "token table"
    return {"positions": "positions"}.get(words[-1] if words else "", "rest")


def weights_by_part(model: nn.Module) -> Iterator[tuple[str, str, Tensor]]:
    """Each weight once, with its part and name; one that two parts share belongs to the first."""
    modules = dict(model.named_modules())
    for name, p in model.named_parameters():
        owner, _, last = name.rpartition(".")
        part = part_of(owner, modules[owner])
        if part == "rest" and last in ("positions", "position"):
            part = "positions"
        yield part, name, p


def parameters_by_part(model: nn.Module) -> dict[str, int]:
    """How many numbers are learned or kept in each part, the largest first."""
    found: dict[str, int] = {}
    for part, _, p in weights_by_part(model):
        found[part] = found.get(part, 0) + p.numel()
    return dict(sorted(found.items(), key=lambda item: -item[1]))
