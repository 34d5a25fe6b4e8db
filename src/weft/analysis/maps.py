"""The attention of a whole model as arrays, layer by layer and through all layers together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from weft.analysis.capturing import AttentionMap, capture
from weft.errors import ShapeError, UnsupportedError
from weft.models import PackedTexts
from weft.models.sites import attentions

HAVE_IT = "one with attention: gpt, bert, transformer, t5, vit, davit or bahdanau"


def attention_maps(
    model: nn.Module, inputs: Any, pattern: str = "*", **options: Any
) -> dict[str, Float[np.ndarray, "B H T S"]]:
    """The attention weights of every layer for these inputs, by the names of the modules, in the order they ran.

    `inputs` are what the model reads: ids (B, T) of a GPT or BERT, ids and segments of pairs, or a `PackedTexts`; ids
    of sources and of targets of a model that writes one text from another; pixels (B, C, Y, X). `options` are those of
    the model's own call, such as keep, which marks padding. Rows ask, columns answer, and each row adds up to 1; an
    attention of channels gives (B, H, I, J), which channel of a head receives how much of which. The model computes as
    always, by its fastest road and without dropout; what is shown are the weights in use.
    """
    found = looked_at(model, inputs, pattern, **options)
    return {name: as_array(seen.weights) for name, seen in found.items()}


def as_array(weights: Float[Tensor, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """In float32, or float64 if they are; numpy does not know all halves."""
    found = weights if weights.dtype == torch.float64 else weights.float()
    return found.cpu().numpy()


def looked_at(model: nn.Module, inputs: Any, pattern: str = "*", **options: Any) -> dict[str, AttentionMap]:
    """The same as maps, with the queries, keys and values that the weights come from."""

    def read() -> None:
        if isinstance(inputs, PackedTexts):
            inputs.to(_device(model)).states(model)
        else:
            given = inputs if isinstance(inputs, tuple | list) else (inputs,)
            model(*(_tensor(one, model) for one in given), **options)

    return watched(model, read, pattern)[1]


Found = TypeVar("Found")


def watched(
    model: nn.Module, compute: Callable[[], Found], pattern: str = "*"
) -> tuple[Found, dict[str, AttentionMap]]:
    """What a computation with the model gives, and the maps of all that looked meanwhile."""
    check_attends(model)
    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode(), capture(model, pattern) as maps:
            found = compute()
    finally:
        model.train(was_training)
    for name, seen in maps.items():
        _check_shown(name, seen)
    return found, maps


def check_attends(model: nn.Module) -> None:
    """Refuse a model in which nothing looks at anything."""
    if not attentions(model):
        raise UnsupportedError(f"a {type(model).__name__} has no attention to look at", expected=HAVE_IT)


def rollout(layers: Sequence[Float[np.ndarray, "_ T S"]]) -> Float[np.ndarray, "T T"]:
    """How much of each input is in each state after these layers: the product of ½A + ½I, heads averaged.

    Abnar and Zuidema 2020, "Quantifying Attention Flow in Transformers"; the half that stays is the residual stream.
    Rows add up to 1; one that may look at nothing stays as it is.
    """
    if not layers or any(layer.ndim != 3 or layer.shape[1] != layer.shape[2] for layer in layers):
        shapes = ", ".join(str(layer.shape) for layer in layers) or "no layers"
        raise ShapeError(f"a rollout of {shapes}", expected="layers of (H, T, T): each state looks at those before")
    identity = np.eye(layers[0].shape[1])
    through = identity
    for layer in layers:
        mixed = 0.5 * layer.mean(0, dtype=np.float64) + 0.5 * identity
        through = (mixed / mixed.sum(1, keepdims=True)) @ through
    return through


def _check_shown(name: str, seen: AttentionMap) -> None:
    """A kind that has no table says so with the name of the layer."""
    try:
        _ = seen.weights
    except UnsupportedError as error:
        raise UnsupportedError(f"{name}: {error}") from None


def _tensor(given: Any, model: nn.Module) -> Tensor:
    found = given if isinstance(given, Tensor) else torch.as_tensor(np.asarray(given))
    if found.is_floating_point():  # pixels
        return found.to(_device(model), next((p.dtype for p in model.parameters()), torch.float32))
    return found.to(_device(model), torch.long)


def _device(model: nn.Module) -> torch.device:
    return next((p.device for p in model.parameters()), torch.device("cpu"))
