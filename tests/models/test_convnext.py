"""ConvNeXt: sizes, places, start, layer scale, drop path; what it refuses; it learns."""

import pytest
import torch
import torch.nn.functional as F

from fixtures.weights import move_weights
from models.squares import draw_squares, learn_squares
from weft.errors import ConfigError, ShapeError, UnsupportedError
from weft.models import ModelConfig
from weft.models.convnext.model import ConvNeXtConfig
from weft.models.images import ImageHead

SMALL = {"channels": 1, "widths": (8, 16, 32), "depths": (1, 2, 1), "head": {"classes": 3}}


def model(**changes):
    torch.manual_seed(1)
    built = ConvNeXtConfig(**SMALL | changes).build().double().eval()
    move_weights(built)
    return built


@pytest.mark.parametrize(("name", "millions"), [("tiny", 28.6), ("small", 50.2), ("base", 88.6)])
def test_the_presets_have_the_sizes_of_the_paper(name, millions):
    config = ConvNeXtConfig(**ConvNeXtConfig.presets[f"convnext-{name}"])
    assert round(sum(p.numel() for p in config.skeleton().parameters()) / 1e6, 1) == millions
    assert config.depth == sum(config.depths) and config.width == config.widths[-1]
    assert ModelConfig.from_config(config.to_dict()) == config


@pytest.mark.parametrize(
    ("size", "patch", "places"), [((28, 28), 2, 9), ((29, 35), 2, 12), ((8, 8), 2, 1), ((28, 28), 4, 1)]
)
def test_every_stage_halves_the_image(size, patch, places):
    convnext = model(patch=patch)
    states = convnext.hidden(torch.randn(2, 1, *size, dtype=torch.float64))
    assert states.shape == (2, places, 32) and convnext.class_logits(states).shape == (2, 3)


def test_places_are_counted_row_by_row():
    convnext = model(widths=(8,), depths=(1,), kernel=1)  # no place sees another
    pixels = torch.randn(1, 1, 6, 8, dtype=torch.float64)
    changed = pixels.clone()
    changed[0, 0, 3, 7] += 1  # the second row of patches, the last of four
    moved = (convnext.hidden(pixels) - convnext.hidden(changed)).abs().amax(2)[0] > 0
    assert moved.tolist() == [place == 7 for place in range(12)]


def test_the_convolution_sees_kernel_rows_around_each_place():
    convnext = model(widths=(8,), depths=(1,), kernel=5, patch=1)
    pixels = torch.randn(1, 1, 9, 9, dtype=torch.float64, requires_grad=True)
    convnext.hidden(pixels).unflatten(1, (9, 9))[0, 4, 4].sum().backward()
    seen = pixels.grad[0, 0] != 0
    assert seen[2:7, 2:7].all() and int(seen.sum()) == 25


def test_a_image_does_not_depend_on_its_company():
    convnext, pixels = model(), torch.randn(5, 1, 17, 20, dtype=torch.float64)
    together = convnext(pixels)
    for i in range(5):
        assert torch.allclose(convnext(pixels[i : i + 1])[0], together[i], atol=1e-12)


def test_pooling_is_the_norm_of_the_mean():
    convnext = model()
    states = convnext.hidden(torch.randn(2, 1, 24, 24, dtype=torch.float64))
    expected = F.layer_norm(states.mean(1), (32,), convnext.norm.weight, convnext.norm.bias, 1e-6)
    assert torch.allclose(convnext.pooled(states), expected, atol=1e-12)
    other = F.layer_norm(states, (32,), convnext.norm.weight, convnext.norm.bias, 1e-6).mean(1)
    assert (convnext.pooled(states) - other).abs().max() > 1e-3  # a negative control: the order matters


def test_the_start_is_that_of_the_paper():
    convnext = ConvNeXtConfig(**SMALL).build()
    scales = [p for name, p in convnext.named_parameters() if name.endswith(".scale")]
    assert len(scales) == 4 and all(torch.equal(p, torch.full_like(p, 1e-6)) for p in scales)
    up = convnext.stages[2].layers[0].feed_forward.up.weight
    assert 0.015 < up.std() < 0.02 and up.abs().max() <= 0.04
    assert not any(p.any() for name, p in convnext.named_parameters() if name.endswith("bias"))
    x = torch.randn(2, 8, 6, 6)
    assert (convnext.stages[0].layers[0](x) - x).abs().max() < 1e-5
    assert not any(name.endswith(".scale") for name in ConvNeXtConfig(**SMALL, layer_scale=0).shapes())
    assert not list(convnext.buffers())


def test_branches_are_left_out_in_training_alone_and_rarely_at_first():
    convnext = model(drop_path=0.5)
    shares = [layer.drop_path for stage in convnext.stages for layer in stage.layers]
    assert shares == pytest.approx([0, 1 / 6, 1 / 3, 1 / 2])
    layer, x = convnext.stages[2].layers[0], torch.randn(400, 32, 1, 1, dtype=torch.float64)
    whole = layer(x) - x
    layer.train()
    torch.manual_seed(0)
    kept = (layer(x) - x) / whole
    ratio = kept.flatten(1).median(1).values
    assert torch.all((ratio.abs() < 1e-6) | ((ratio - 2).abs() < 1e-6)) and 160 < int((ratio > 1).sum()) < 240


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"widths": (8, 16)}, "2 widths and 3 depths"),
        ({"widths": (), "depths": ()}, "0 widths and 0 depths"),
        ({"widths": (8,) * 13, "depths": (1,) * 13}, "from 1 to 12 stages"),
        ({"kernel": 4}, "an odd number"),
        ({"drop_path": 1.0}, "less"),
        ({"width": 8}, "did you mean 'widths'"),
    ],
)
def test_what_cannot_be_is_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        ConvNeXtConfig(**SMALL | changes)


def test_images_that_do_not_fit_are_refused():
    convnext = model()
    with pytest.raises(ShapeError, match=r"at least 8 × 8"):
        convnext(torch.zeros(1, 1, 7, 20, dtype=torch.float64))
    with pytest.raises(ShapeError, match=r"expected \(B, 1, Y, X\)"):
        convnext(torch.zeros(1, 3, 20, 20, dtype=torch.float64))
    trunk = model(head={"classes": 0})
    with pytest.raises(UnsupportedError, match=r"head.classes = 0"):
        trunk.class_logits(trunk(torch.zeros(1, 1, 8, 8, dtype=torch.float64)))


def test_a_hidden_layer_without_classes_is_a_head_of_its_own():
    convnext = model(head={"hidden": 5})
    states = convnext.hidden(torch.randn(2, 1, 8, 8, dtype=torch.float64))
    assert convnext.classes(convnext.pooled(states)).shape == (2, 5)
    with pytest.raises(UnsupportedError, match=r"head.classes = 0"):
        convnext.class_logits(states)
    assert ImageHead(hidden=5, classes=2).build(4)[3].weight.shape == (2, 5)


def test_it_learns_where_a_square_is():
    pixels, corners = draw_squares()
    convnext = ConvNeXtConfig(channels=1, widths=(8, 16), depths=(1, 1), head={"classes": 4}).build()
    loss = learn_squares(convnext, pixels, corners)
    assert loss < 0.1 and all(p.grad is not None for p in convnext.parameters())
