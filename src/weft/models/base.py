"""The base classes of every model family: a config that is chosen by the family's name, and the model it builds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast, get_args

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from weft.blocks.roles import Group, Role, weight_roles
from weft.config import Choice, Size
from weft.errors import ConfigError, UnsupportedError, WeightsError
from weft.models.capabilities import DOES, Capability, CausalLM, EncodesText
from weft.models.sites import AttentionSite, ReachStack, attentions, no_part, seeing, sites_in
from weft.models.sizing import Sizing


class _Undrawn(TorchFunctionMode):
    """Skips torch's initialisers: their numbers are not used, and a thousand layers would take seconds."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__module__", None) == "torch.nn.init":
            return args[0] if args else kwargs["tensor"]
        return func(*args, **(kwargs or {}))


Maker = Callable[[tuple[int, ...], int], Tensor]
"""Makes an example tensor of this shape: whole numbers below the second argument, or normal ones if that is 0."""


@dataclass(frozen=True, eq=False)
class LayerSite:
    """One layer of a model: its name among the model's modules, and the module; `before` are modules that lead into it
    and are counted with it (what makes an image smaller at the start of a stage)."""

    name: str
    module: nn.Module
    before: tuple[nn.Module, ...] = ()


@dataclass(frozen=True, eq=False)
class LayerStack:
    """Layers one after the other; `name` is empty where a model has one stack only, else "encoder" or "decoder"."""

    name: str
    layers: tuple[LayerSite, ...]


def stack_of(place: str, layers: nn.ModuleList, name: str = "") -> LayerStack:
    """A stack of the layers that have this name in the model."""
    return LayerStack(name, tuple(LayerSite(f"{place}.{n}", layer) for n, layer in enumerate(layers)))


def stack_of_stages(stages: nn.ModuleList, before: str = "") -> LayerStack:
    """One stack of the layers of all stages; `before` is what leads into a stage, and is counted with its first."""
    found = []
    for number, stage in enumerate(stages):
        leads = getattr(stage, before) if before else None
        for n, layer in enumerate(cast(nn.ModuleList, stage.layers)):
            site = LayerSite(f"stages.{number}.layers.{n}", layer)
            found.append(replace(site, before=(leads,)) if n == 0 and leads is not None else site)
    return LayerStack("", tuple(found))


class Model(nn.Module):
    """The interface of every model, whatever its family. A method that a family leaves out raises `UnsupportedError`.

    Called, it gives logits: of the head that it has. The states that the head reads come from `hidden`, which takes the
    same inputs (from `encode` and `states`, where one text is written from another). A model without a head, a trunk,
    gives its states by the call too.

    `roles`: what its own parameters, and plain modules of torch that it holds, are for (`blocks/roles.py`).
    """

    roles: ClassVar[Mapping[str, Role]] = {}

    config: Any

    def example_inputs(self, batch: int, length: int, make: Maker) -> tuple[Any, ...]:
        """Arguments that `model(*inputs)` takes: `batch` texts of `length` tokens, or images of so many rows."""
        raise UnsupportedError(f"{type(self).__name__} has no example inputs")

    def example_loss(self, batch: int, length: int, make: Maker) -> Tensor:
        """The loss of one training step on example inputs, with the head that the model has."""
        raise UnsupportedError(f"{type(self).__name__} has no example of a training step")

    def layers_in_order(self) -> list[LayerStack]:
        """The layers in the order in which they run: one stack, or those of an encoder and a decoder."""
        raise UnsupportedError(f"{type(self).__name__} does not say which layers it has")

    def parameter_groups(self) -> dict[Group, dict[str, nn.Parameter]]:
        """Every parameter in exactly one group, by name: embeddings, matrices, head, or vectors."""
        groups: dict[Group, dict[str, nn.Parameter]] = {group: {} for group in get_args(Group)}
        roles = weight_roles(self)
        for name, p in self.named_parameters():
            groups[roles[name].group_of(p)][name] = p
        return groups

    reads_pairs: ClassVar[bool] = False  # two texts in one row, marked by segments

    def reach_stacks(self, part: str | None = None) -> list[ReachStack]:
        """The layers in order, with what each of them sees. The stack of the output states comes last, one that
        runs before it comes first; `part`: the "encoder" or "decoder" of a model that has both.

        By default it asks each layer of the list `layers` what it sees."""
        no_part(self, part)
        layers = getattr(self, "layers", None)
        if not isinstance(layers, nn.ModuleList) or not len(layers):
            raise UnsupportedError(
                f"the reach of a {type(self).__name__}", expected="a model whose layers are in a list `layers`"
            )
        return [ReachStack([seeing(str(number), layer) for number, layer in enumerate(layers, 1)])]

    def attention_sites(self) -> list[AttentionSite]:
        """Every attention of the model: where it is, and what the rows and columns of its map are.

        By default, attentions of layers in one list `layers` attend to the tokens of one text."""
        found = sites_in(self, "layers") if isinstance(getattr(self, "layers", None), nn.ModuleList) else []
        if unknown := [name for name in attentions(self) if name not in {site.name for site in found}]:
            raise UnsupportedError(
                f"{type(self).__name__} does not say what {unknown[0]} looks at", expected="attention_sites()"
            )
        return found


class ModelConfig(Choice):
    """Which family: `ModelConfig.registry` lists them, `.build()` makes the model with fresh weights.

    learns    the capabilities that the family can be trained for, and how; `provides` are those of a config as it is
    presets   named sizes: their fields
    """

    learns: ClassVar[Mapping[Capability, Sizing]] = {}
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    learned_in_steps: ClassVar[bool] = True  # by gradients; else all at once, by counting
    learned_in_place: ClassVar[bool] = False  # by a loop of its own, without torch's gradients and optimizer
    needs_numbers: ClassVar[bool] = False  # which tokens it gets, and not only how many, decides what it computes

    @property
    def provides(self) -> frozenset[Capability]:
        """The capabilities of the model with its head: it is an instance of each of these protocols."""
        raise UnsupportedError(f"model family {self.kind!r} does not say what it can do")

    @property
    def mostly(self) -> Capability:
        """Its main capability: the first in `DOES` that it provides."""
        return next(capability for capability in DOES if capability in self.provides)

    def build(self) -> Model:
        """The model, freshly initialised from torch's random state."""
        raise UnsupportedError(f"model family {self.kind!r} cannot be built")

    def skeleton(self) -> Model:
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

    def as_used(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Tensors of a file as the model computes with them: copies in float32."""
        return {name: tensor.to(torch.float32, copy=True) for name, tensor in tensors.items()}

    def with_weights(self, weights: Mapping[str, Tensor]) -> Model:
        """The model with these tensors as its parameters, which it takes over: no number is drawn or copied."""
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
    """A family of language models, which continue a text: its model gives logits (B, T, V), and writes through
    `new_caches` and `next_logits`."""

    vocab_size: Size

    @property
    def provides(self) -> frozenset[Capability]:
        return frozenset({CausalLM, EncodesText})
