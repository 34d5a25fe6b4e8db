"""Counting the operations of a real step, as torch sees them: what the rules of `weft.cost` are held against."""

import math
from unittest import mock

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from weft.blocks.attention import tiles
from weft.cost.learning import PLAIN
from weft.cost.step import step_loss
from weft.models import ModelConfig, PictureConfig

aten = torch.ops.aten
FAMILIES = [family for family in ModelConfig.menu if ModelConfig.menu.find(family).learned_in_steps]


def numbers(shape, below):
    return torch.randint(below, shape) if below else torch.randn(shape)


def small(family, **more):
    """A small model of a family, whichever fields that has."""
    fields = ModelConfig.menu.find(family).__dataclass_fields__
    made = {"kind": family}
    made |= {"vocab_size": 96} if "vocab_size" in fields else {}
    made |= {"width": 64} if "width" in fields else {}
    made |= {"head": {"classes": 10}} if issubclass(ModelConfig.menu.find(family), PictureConfig) else {}
    return ModelConfig.pick(made | more)


def usual_length(config):
    return 32 if isinstance(config, PictureConfig) else 40


def _matrix_by_vector(matrix, vector, *_, out_shape=None, **__):
    return 2 * matrix[0] * matrix[1]


def _convolution_back(slope, x, weight, *rest, out_shape=None, **_):
    """torch's own count forgets that channels come in groups."""
    return 2 * slope[0] * math.prod(slope[2:]) * math.prod(weight) * sum(rest[7][:2])


def counted(config, batch, length, learning=PLAIN):
    """Operations forward and backward of a real step by the plain kernels, which torch can count."""
    torch.manual_seed(0)
    model = learning.ready(config.build())
    rules = {aten.mv: _matrix_by_vector, aten.convolution_backward: _convolution_back}
    counter = FlopCounterMode(display=False, custom_mapping=rules)
    plain = torch.backends.mkldnn.flags(enabled=False)
    with mock.patch.object(tiles, "FUSED", None), sdpa_kernel(SDPBackend.MATH), plain:
        with counter:
            loss = step_loss(config, model, numbers, batch, length)
        forward = counter.get_total_flops()
        with counter:
            loss.backward()
    return forward, counter.get_total_flops()
