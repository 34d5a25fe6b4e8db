"""What every model family has: a config that is picked by the family's name and builds the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from weft.config import Choice, Size
from weft.errors import ConfigError, UnsupportedError, WeightsError


class _Undrawn(TorchFunctionMode):
    """Skips torch's initialisers: there is nothing to draw into, and a thousand layers would take seconds."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__module__", None) == "torch.nn.init":
            return args[0] if args else kwargs["tensor"]
        return func(*args, **(kwargs or {}))


class ModelConfig(Choice):
    """Which family: `ModelConfig.menu` lists them, `.build()` makes the model with fresh weights.

    `heads` are the beginnings of the names of parameters that belong to a task and not to the trunk.
    """

    heads: ClassVar[tuple[str, ...]] = ()

    def build(self) -> nn.Module:
        """The model, freshly initialised from torch's random state."""
        raise UnsupportedError(f"model family {self.kind!r} cannot be built")

    def skeleton(self) -> nn.Module:
        """The model without memory for its weights (on torch's `meta` device): names and shapes alone."""
        try:
            with torch.device("meta"), _Undrawn():
                return self.build()
        except RuntimeError:  # torch cannot even count its bytes
            raise ConfigError("a model of these sizes has more bytes than can be counted") from None

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the parameters; one that is tied to another has that one's name."""
        return {name: tuple(p.shape) for name, p in self.skeleton().named_parameters()}

    @property
    def context(self) -> int | None:
        """How many tokens it can see at once; None: any number."""
        return None

    def with_weights(self, weights: Mapping[str, Tensor]) -> nn.Module:
        """The model with these tensors as its parameters, which it takes over: nothing is drawn or copied first."""
        model = self.skeleton()
        expected = dict(model.named_parameters())
        for name in [*expected, *weights]:
            if name not in weights:
                raise WeightsError(f"there is no tensor {name!r}", expected="every parameter of the model")
            if name not in expected:
                raise WeightsError(f"the tensor {name!r} has no place in this model")
            if weights[name].shape != expected[name].shape:
                given = f"{name!r} has shape {tuple(weights[name].shape)}"
                raise WeightsError(given, expected=str(tuple(expected[name].shape)))
        if any(True for _ in model.buffers()):  # values that only building computes
            model = self.build()
            model.load_state_dict(dict(weights), strict=False)
            return model
        filled = {id(p): nn.Parameter(weights[name], requires_grad=p.requires_grad) for name, p in expected.items()}
        for module in model.modules():
            for name, p in module.named_parameters(recurse=False, remove_duplicate=False):
                setattr(module, name, filled[id(p)])
        return model


class LanguageConfig(ModelConfig):
    """A family that goes on with a text: its model gives logits (B, T, V), and writes through `new_caches` and
    `next_logits` (`weft.generation.LanguageModel`)."""

    vocab_size: Size
