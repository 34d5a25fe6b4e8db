"""Counting the operations of a real step, as torch sees them: what the rules of `weft.cost` are held against."""

import math
from unittest import mock

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from weft.blocks.attention import tiles
from weft.cost.flops import walk
from weft.cost.learning import PLAIN
from weft.models import ImageConfig, ModelConfig

aten = torch.ops.aten
FAMILIES = [family for family in ModelConfig.registry if ModelConfig.registry.find(family).learned_in_steps]


def numbers(shape, below):
    return torch.randint(below, shape) if below else torch.randn(shape)


def small(family, **more):
    """A small model of a family, whichever fields that has."""
    fields = ModelConfig.registry.find(family).__dataclass_fields__
    made = {"kind": family}
    made |= {"vocab_size": 96} if "vocab_size" in fields else {}
    made |= {"width": 64} if "width" in fields else {}
    made |= {"head": {"classes": 10}} if issubclass(ModelConfig.registry.find(family), ImageConfig) else {}
    return ModelConfig.from_config(made | more)


def usual_length(config):
    return 32 if isinstance(config, ImageConfig) else 40


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
            loss = model.example_loss(batch, length, numbers)
        forward = counter.get_total_flops()
        with counter:
            loss.backward()
    return forward, counter.get_total_flops()


def agrees(config, batch, length, learning=PLAIN):
    """Operations by rules are those that were counted."""
    found = walk(config, batch=batch, length=length, learning=learning).total
    forward, backward = counted(config, batch, length, learning)
    assert found.forward == pytest.approx(forward, rel=0.01)
    assert found.backward == pytest.approx(backward, rel=0.01)
