"""ResNet: sizes, places, company, start; what it refuses; it learns."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fixtures.weights import move_weights
from models.squares import draw_squares, learn_squares
from weft.errors import ConfigError, ShapeError
from weft.models import ModelConfig
from weft.models.resnet import ResNetConfig

SMALL = {"channels": 1, "widths": (8, 16, 32), "depths": (1, 2, 1), "groups": 4, "head": {"classes": 3}}


def model(**changes):
    torch.manual_seed(1)
    built = ResNetConfig(**SMALL | changes).build().double()
    move_weights(built)
    return built


@pytest.mark.parametrize(("name", "millions"), [("18", 11.7), ("34", 21.8)])
def test_the_presets_have_the_sizes_of_the_paper(name, millions):
    config = ResNetConfig(**ResNetConfig.presets[f"resnet-{name}"])
    assert round(sum(p.numel() for p in config.skeleton().parameters()) / 1e6, 1) == millions
    assert 2 * config.depth + 2 == int(name)  # convolutions, and the scores
    assert ModelConfig.from_config(config.to_dict()) == config


@pytest.mark.parametrize(
    ("size", "stem", "places"),
    [
        ((28, 28), "small", 49),
        ((29, 18), "small", 40),
        ((1, 1), "small", 1),
        ((64, 64), "large", 16),
        ((33, 1), "large", 3),
    ],
)
def test_every_stage_halves_the_image(size, stem, places):
    resnet = model(stem=stem)
    states = resnet.hidden(torch.randn(2, 1, *size, dtype=torch.float64))
    assert states.shape == (2, places, 32) and resnet.class_logits(states).shape == (2, 3)
    assert (states >= 0).all() and states.any()


@pytest.mark.parametrize("stem", ["small", "large"])
def test_a_image_does_not_depend_on_its_company(stem):
    resnet, pixels = model(stem=stem), torch.randn(5, 1, 17, 20, dtype=torch.float64)
    resnet.train()  # where batch norm would mix them
    together = resnet(pixels)
    for i in range(5):
        assert torch.allclose(resnet(pixels[i : i + 1])[0], together[i], atol=1e-12)
    assert torch.equal(resnet.eval()(pixels), together)
    assert not list(resnet.buffers()) and not any(isinstance(part, nn.BatchNorm2d) for part in resnet.modules())


def norm(x, weight, bias, groups=4):
    """Group norm by its definition."""
    grouped = x.unflatten(1, (groups, -1))
    mean, var = grouped.mean((2, 3, 4), keepdim=True), grouped.var((2, 3, 4), keepdim=True, correction=0)
    return ((grouped - mean) / (var + 1e-5).sqrt()).flatten(1, 2) * weight[:, None, None] + bias[:, None, None]


def test_a_layer_adds_to_what_it_was_given():
    resnet = model()
    x = torch.randn(2, 16, 6, 5, dtype=torch.float64)
    layer = resnet.stages[1].layers[1]  # nothing changes its size
    assert layer.shortcut is None
    inner = F.conv2d(F.relu(norm(x, layer.first_norm.weight, layer.first_norm.bias)), layer.first.weight, padding=1)
    inner = F.relu(norm(inner, layer.second_norm.weight, layer.second_norm.bias))
    assert torch.allclose(layer(x), x + F.conv2d(inner, layer.second.weight, padding=1), atol=1e-12)

    downsample, x = resnet.stages[1].layers[0], torch.randn(2, 8, 7, 6, dtype=torch.float64)
    with torch.no_grad():
        downsample.second.weight.zero_()
    ready = F.relu(norm(x, downsample.first_norm.weight, downsample.first_norm.bias))
    assert torch.allclose(downsample(x), F.conv2d(ready, downsample.shortcut.weight, stride=2), atol=1e-12)


def test_the_start():
    resnet = ResNetConfig(**SMALL).build()
    x = torch.randn(2, 16, 5, 5)
    assert torch.equal(resnet.stages[1].layers[1](x), x)  # branches begin at zero
    assert not resnet.classes[1].weight.any()
    full = ResNetConfig(**SMALL, zero_outputs=False).build()
    assert full.classes[1].weight.any() and (full.stages[1].layers[1](x) - x).std() > 0.3
    first = full.stages[2].layers[0].first.weight
    assert abs(float(first.detach().std()) / (2 / (9 * 16)) ** 0.5 - 1) < 0.1
    logits = resnet(torch.randn(2, 1, 8, 8))
    assert not logits.any()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"widths": (8, 16)}, "2 widths and 3 depths"),
        ({"depths": (), "widths": ()}, "0 widths and 0 depths"),
        ({"groups": 3}, "a width of 8 in 3 groups"),
        ({"stem": "medium"}, "one of small, large"),
    ],
)
def test_what_cannot_be_is_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        ResNetConfig(**SMALL | changes)


def test_images_that_do_not_fit_are_refused():
    with pytest.raises(ShapeError, match=r"expected \(B, 1, Y, X\)"):
        model()(torch.zeros(1, 3, 20, 20, dtype=torch.float64))


def test_it_learns_where_a_square_is():
    pixels, corners = draw_squares()
    resnet = ResNetConfig(channels=1, widths=(8, 16), depths=(1, 1), groups=4, head={"classes": 4}).build()
    loss = learn_squares(resnet, pixels, corners)
    assert loss < 0.1 and all(p.grad is not None for p in resnet.parameters())
