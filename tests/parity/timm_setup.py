"""timm without torchvision, which it imports for things that no test here uses; tiny models of timm's, and folders.

`timm_or_skip()` puts empty modules in torchvision's place while timm is imported, and takes them away again, so that
nobody else takes them for the real thing.
"""

import enum
import importlib.util
import json
import sys
import types

import pytest
import torch
from safetensors.torch import save_file

NAMES = ("", ".ops", ".ops.misc", ".transforms", ".transforms.functional", ".datasets", ".datasets.folder", ".utils")


class Missing(types.ModuleType):
    """A module in which every name is an empty class."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (torch.nn.Module,), {})


Ways = enum.Enum("Ways", ["NEAREST", "BILINEAR", "BICUBIC", "BOX", "HAMMING", "LANCZOS"])


def timm_or_skip():
    """timm, imported."""
    if importlib.util.find_spec("timm") is None:
        pytest.skip("timm is a peer; `make setup` installs it", allow_module_level=True)
    if importlib.util.find_spec("torchvision") is not None or "timm" in sys.modules:
        return importlib.import_module("timm")
    stubs = {f"torchvision{name}": Missing(f"torchvision{name}") for name in NAMES}
    for name, module in stubs.items():
        module.__path__, module.__version__ = [], "0"
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(stubs[parent], last, module)
    stubs["torchvision.transforms.functional"].InterpolationMode = Ways
    sys.modules.update(stubs)
    try:
        return importlib.import_module("timm")
    finally:
        for name in stubs:
            del sys.modules[name]


def timm_model(architecture, **arguments):
    """A tiny one of theirs, with every parameter moved away from zeros and ones."""
    timm = timm_or_skip()
    torch.manual_seed(1)
    model = timm.create_model(architecture, **arguments).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.2 * torch.randn_like(p))
    return model


def timm_folder(path, model, architecture, arguments, **settings):
    """A folder as their hub has it."""
    path.mkdir()
    save_file({name: tensor.contiguous() for name, tensor in model.state_dict().items()}, path / "model.safetensors")
    size = arguments.get("img_size", 32)
    told = {"architecture": architecture, "num_classes": model.num_classes, "num_features": model.num_features}
    told["model_args"] = {name: value for name, value in arguments.items() if name != "num_classes"}
    told["pretrained_cfg"] = {
        "tag": "a_tag",
        "input_size": [arguments.get("in_chans", 3), size, size],
        "fixed_input_size": "img_size" in arguments,
        "interpolation": "bicubic",
        "crop_pct": 0.9,
        "crop_mode": "center",
        "mean": [0.5, 0.4, 0.3],
        "std": [0.2, 0.3, 0.4],
        "num_classes": model.num_classes,
    }
    (path / "config.json").write_text(json.dumps(told | settings))
    return path
