"""The cost of one training step of a model that looks at pictures, found by running it without numbers.

Tensors on torch's `meta` device have shapes and no memory, so the largest model is walked through in milliseconds:
operations are counted on the way, and so are the bytes that backward asks to be kept.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from weft.cost.language_model import BYTES, Cost
from weft.models.pictures import PictureConfig, PictureModel


def picture_cost(config: PictureConfig, *, batch: int, size: int, optimizer_copies: float = 1.5) -> Cost:
    """Forward and backward cost three times the forward part. `tokens` counts pictures.

    Memory: weights, gradients, optimizer state and what backward needs.
    """
    model = config.skeleton()
    assert isinstance(model, PictureModel)
    parameters = sum(p.numel() for p in model.parameters())
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage()._cdata] = tensor.untyped_storage().nbytes()
        return tensor

    pixels = torch.empty(1, config.channels, size, size, device="meta")
    counter = FlopCounterMode(display=False)
    with counter, sdpa_kernel(SDPBackend.MATH), torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        states = model(pixels)
        if model.classes is not None:
            model.class_logits(states)
    weights = {p.untyped_storage()._cdata for p in model.parameters()}
    activations = sum(size for key, size in kept.items() if key not in weights)
    memory = int(BYTES * parameters * (2 + optimizer_copies) + batch * activations)
    return Cost(parameters, batch, 3.0 * batch * counter.get_total_flops(), memory)
