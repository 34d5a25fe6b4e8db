"""Weft: train, run and look inside a Transformer on your own data, on your own computer.

Names are loaded when they are first used, so that `import weft` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.analysis.capturing import capture as capture
    from weft.api import load as load
    from weft.api import train as train
    from weft.blocks.attention import AttentionConfig as AttentionConfig
    from weft.blocks.attention import Mask as Mask
    from weft.blocks.attention import attention as attention
    from weft.comparison.comparing import compare as compare
    from weft.errors import WeftError as WeftError
    from weft.tasks import Run as Run

__version__ = "0.1.0"

_HOME = {
    "AttentionConfig": "weft.blocks.attention",
    "Mask": "weft.blocks.attention",
    "Run": "weft.tasks",
    "WeftError": "weft.errors",
    "attention": "weft.blocks.attention",
    "capture": "weft.analysis.capturing",
    "compare": "weft.comparison",
    "load": "weft.api",
    "train": "weft.api",
}

__all__ = ["AttentionConfig", "Mask", "Run", "WeftError", "attention", "capture", "compare", "load", "train"]


_PACKAGES = (
    "analysis",
    "blocks",
    "comparison",
    "config",
    "data",
    "errors",
    "models",
    "plugins",
    "tasks",
    "text",
    "theory",
    "training",
    "weights",
)


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"weft.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    if name in ("compare", "load", "train"):  # they meet kinds that installed packages may have registered
        import_module("weft.plugins").load_installed()
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*_HOME, "__version__"])
