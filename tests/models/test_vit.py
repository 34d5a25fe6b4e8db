"""ViT: patches, positions that stretch, sizes as published, and what it refuses."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from fixtures.weights import move_weights
from weft.blocks.position.stretching import stretched
from weft.cost import cost_of
from weft.errors import ConfigError, ShapeError, UnsupportedError
from weft.models import ModelConfig, preset
from weft.models.images import ImageHead
from weft.models.vit.model import ViT, ViTConfig

TINY = {"image_size": 12, "patch": 4, "channels": 1, "width": 16, "depth": 2, "head": ImageHead(classes=3)}
SIZES = {"vit-ti": 5.7, "vit-s": 22.1, "vit-b": 86.6, "vit-l": 304.3, "vit-h": 632.0}


def tiny(**fields) -> ViT:
    torch.manual_seed(0)
    model = ViTConfig(**TINY | {"zero_outputs": False} | fields).build().eval()
    move_weights(model, 0.1)
    return model


@pytest.mark.parametrize("name", SIZES)
def test_presets_have_the_published_numbers_of_parameters(name):
    family, fields = preset(name)
    cost = cost_of(ModelConfig.from_config({"kind": family, **fields}), batch=1, length=224)
    assert round(cost.parameters / 1e6, 1) == SIZES[name]


def test_operations_of_vit_b_are_those_of_its_maps_and_scores():
    family, fields = preset("vit-b")
    cost = cost_of(ModelConfig.from_config({"kind": family, **fields}), batch=2, length=224)
    tokens, width, depth = 197, 768, 12
    layer = 2 * tokens * 12 * width**2 + 4 * tokens**2 * width
    first, last = 2 * 196 * 3 * 256 * width, 2 * width * 1000
    assert cost.flops == 2 * (3 * (depth * layer + last) + 2 * first), "nobody asks for the gradient of pixels"


def test_patches_are_a_convolution_whose_stride_is_its_kernel():
    """Claim T28: cutting into patches and mapping each is the same as a convolution."""
    model, pixels = tiny(channels=3), torch.randn(2, 3, 12, 12)
    cut = F.unfold(pixels, kernel_size=4, stride=4).transpose(1, 2)
    mapped = cut @ model.patches.weight.flatten(1).t() + model.patches.bias
    assert torch.allclose(model.patches(pixels).flatten(2).transpose(1, 2), mapped, atol=1e-5)


def test_the_batch_does_not_matter():
    model, pixels = tiny(), torch.randn(4, 1, 12, 12)
    assert torch.allclose(model.hidden(pixels)[2:3], model.hidden(pixels[2:3]), atol=1e-5)


@pytest.mark.parametrize("pool", ["class", "mean"])
@pytest.mark.parametrize("stem", [(), (8,), (8, 8)])
def test_other_sizes_are_read_with_stretched_positions(pool, stem):
    model = tiny(pool=pool, stem=stem)
    first = 1 if pool == "class" else 0
    for rows, columns in ((12, 12), (20, 16), (8, 12), (13, 15)):
        states = model.hidden(torch.randn(2, 1, rows, columns))
        places = model.patches(model.stem(torch.randn(1, 1, rows, columns)))
        assert states.shape == (2, first + places.shape[2] * places.shape[3], 16)
        assert model.class_logits(states).shape == (2, 3)


def test_stretching_keeps_the_same_grid_and_a_constant():
    table = torch.randn(6, 5)
    assert stretched(table, (2, 3), (2, 3)) is table
    assert torch.allclose(stretched(torch.ones(6, 5), (2, 3), (5, 4)), torch.ones(20, 5), atol=1e-5)
    with pytest.raises(ShapeError, match="2 × 2"):
        stretched(table, (2, 2), (3, 3))


def test_positions_matter_and_patches_alone_do_not_know_their_place():
    model, pixels = tiny(), torch.randn(1, 1, 12, 12)
    swapped = torch.cat([pixels[..., 4:8], pixels[..., :4], pixels[..., 8:]], dim=-1)
    assert not torch.allclose(model(pixels), model(swapped), atol=1e-3)
    with torch.no_grad():
        model.positions.zero_()
    assert torch.allclose(model(pixels), model(swapped), atol=1e-5)


def test_the_pretraining_head_has_a_tanh_layer():
    model = tiny(head=ImageHead(classes=3, hidden=7))
    assert [type(part).__name__ for part in model.classes] == ["Dropout", "Linear", "Tanh", "Linear"]
    assert model.classes[1].weight.shape == (7, 16)
    pooled = model.pooled(model.hidden(torch.randn(2, 1, 12, 12)))
    by_hand = (pooled @ model.classes[1].weight.t() + model.classes[1].bias).tanh()
    assert torch.allclose(model.classes[3](by_hand), model.classes(pooled), atol=1e-6)


def test_fresh_models_say_nothing_at_first():
    model = ViTConfig(**TINY).build()
    assert model(torch.randn(2, 1, 12, 12)).abs().max() == 0


@pytest.mark.parametrize("kind", ["window", "hierarchy"])
def test_other_attention_is_a_word(kind):
    model = tiny(attention={"kind": kind, "heads": 2} | ({"window": 2} if kind == "window" else {}), qk_norm=False)
    full = tiny(attention={"kind": "softmax", "heads": 2}, qk_norm=False)
    pixels = torch.randn(2, 1, 12, 12)
    assert model.hidden(pixels).shape == full.hidden(pixels).shape
    assert not torch.allclose(model.hidden(pixels), full.hidden(pixels), atol=1e-3)


def test_windows_cut_the_image_into_squares():
    """A change in one corner reaches its own window and, by the second layer's shift, no far corner."""
    fields = {"image_size": 32, "attention": {"kind": "window", "heads": 2, "window": 2}, "qk_norm": False}
    model = tiny(**fields | {"depth": 1})
    pixels = torch.randn(1, 1, 32, 32)
    other = pixels.clone()
    other[..., :4, :4] += 1.0
    changed = ((model.hidden(pixels) - model.hidden(other)).abs().amax(-1) > 1e-6).view(8, 8)
    assert changed[:2, :2].all() and int(changed.sum()) == 4


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"stem": (8, 8, 8)}, "multiple of 8"),
        ({"patch": 16}, "smaller patches"),
        ({"attention": {"kind": "window"}, "pool": "class"}, "pool"),
    ],
)
def test_what_cannot_be_is_refused(fields, told):
    with pytest.raises(ConfigError, match=told):
        ViTConfig(**TINY | fields)


def test_wrong_pixels_are_refused():
    model = tiny()
    for pixels in (torch.randn(1, 3, 12, 12), torch.randn(1, 12, 12), torch.randn(1, 1, 3, 12)):
        with pytest.raises(ShapeError):
            model(pixels)
    trunk = tiny(head=ImageHead())
    states = trunk(torch.randn(1, 1, 12, 12))
    with pytest.raises(UnsupportedError, match="no head"):
        trunk.class_logits(states)
