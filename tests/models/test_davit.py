"""DaViT: any size of image, an image alone as in company, its parts, its start, and that it learns."""

import math

import pytest
import torch
import torch.nn.functional as F

import weft
from fixtures.weights import move_weights
from weft.errors import ConfigError, ShapeError, UnsupportedError
from weft.models import ModelConfig
from weft.models.davit.model import DaViTConfig
from weft.training import AdamWConfig

SMALL = {"widths": (8, 12), "depths": (1, 2), "strides": (2, 2), "head_width": 4, "window": 3}
STYLES = {
    "default": DaViTConfig(**SMALL, head={"classes": 3}),
    "one stage": DaViTConfig(widths=(8,), depths=(1,), strides=(1,), head_width=4, window=4, stem=1, channels=1),
    "no smaller": DaViTConfig(**SMALL | {"strides": (1, 1)}, norm="rms", feed_forward="gated"),
    "paper": DaViTConfig(
        **{
            **DaViTConfig.presets["davit-tiny"],
            "widths": (4, 8, 8, 12),
            "depths": (1, 1, 2, 1),
            "head_width": 4,
            "window": 2,
        }
    ),
}


def model(style="default", dtype=torch.float64, **changes):
    torch.manual_seed(1)
    davit = STYLES[style].override(changes).build().to(dtype).eval()
    move_weights(davit)
    return davit


def images(davit, count=2, rows=9, columns=14):
    torch.manual_seed(2)
    return torch.randn(count, davit.config.channels, rows, columns, dtype=torch.float64)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (3, 17), (28, 28), (45, 6)])
def test_any_size_of_image(style, rows, columns):
    davit = model(style)
    found = list(davit.pyramid(images(davit, 2, rows, columns)))
    smaller = 1
    for (states, grid), width, stride in zip(found, davit.config.widths, davit.config.strides, strict=True):
        smaller *= stride
        assert (grid.rows, grid.columns) == (math.ceil(rows / smaller), math.ceil(columns / smaller))
        assert states.shape == (2, grid.places, width)
        assert states.isfinite().all()
    assert torch.equal(davit.hidden(images(davit, 2, rows, columns)), found[-1][0])
    assert davit.pooled(found[-1][0]).shape == (2, davit.config.widths[-1])


@pytest.mark.parametrize("style", STYLES)
def test_a_image_alone_is_the_image_in_a_batch(style):
    davit = model(style)
    pixels = images(davit, 3)
    together = davit.hidden(pixels)
    for row in range(3):
        assert torch.allclose(davit.hidden(pixels[row : row + 1])[0], together[row], atol=1e-12)
    changed = pixels.clone()
    changed[1] += 1
    after = davit.hidden(changed)
    assert torch.equal(after[0], together[0]) and not torch.equal(after[1], together[1])


@pytest.mark.parametrize("style", STYLES)
def test_state_round_trips(style):
    davit = model(style)
    config = ModelConfig.from_dict(davit.config.to_dict())
    assert config == davit.config == ModelConfig.from_toml(davit.config.to_toml())
    again = config.with_weights({name: t.clone() for name, t in davit.state_dict().items()}).eval()
    assert torch.equal(again(images(davit)), davit(images(davit)))
    assert not list(davit.buffers())


def test_every_pixel_reaches_every_place_and_every_parameter_learns():
    davit = model("paper", **{"head.classes": 3})
    pixels = images(davit, 1, 32, 32).requires_grad_()
    first, _ = next(davit.pyramid(pixels))
    (gradient,) = torch.autograd.grad(first[0, -1].square().sum(), pixels)
    assert gradient[0, :, :4, :4].any()  # channels have seen the whole image, in the first layer already
    davit(pixels).square().sum().backward()
    for name, p in davit.named_parameters():
        assert p.grad.isfinite().all() and p.grad.any(), name


def test_windows_alone_would_not_reach_so_far():
    """A negative control: without the channels, the opposite corner is out of sight."""
    davit = model("paper")
    for stage in davit.stages:
        for layer in stage.layers:
            layer.channel.forward = lambda x, grid: x
    pixels = images(davit, 1, 32, 32).requires_grad_()
    first, _ = next(davit.pyramid(pixels))
    (gradient,) = torch.autograd.grad(first[0, -1].square().sum(), pixels)
    assert not gradient[0, :, :4, :4].any()


def test_a_norm_of_the_mean_is_what_the_head_reads():
    davit = model()
    states = davit.hidden(images(davit))
    expected = davit.classes(F.layer_norm(states.mean(1), (12,), davit.norm.weight, davit.norm.bias))
    assert torch.allclose(davit.class_logits(states), expected, atol=1e-12)
    with pytest.raises(UnsupportedError, match=r"head.classes = 0"):
        model("one stage").class_logits(states)


def test_names_of_parameters():
    names = set(STYLES["paper"].shapes())
    half = {
        *(f"attention.{name}.{part}" for name in ("query", "key", "value", "output") for part in ("weight", "bias")),
        *(f"feed_forward.{name}.{part}" for name in ("up", "down") for part in ("weight", "bias")),
        *(f"{which}_residual.norm.{part}" for which in ("attention", "feed_forward") for part in ("weight", "bias")),
        *(f"{which}_positions.map.{part}" for which in ("attention", "feed_forward") for part in ("weight", "bias")),
    }
    for kind in ("spatial", "channel"):
        layer = f"stages.2.layers.1.{kind}."
        assert {name.removeprefix(layer) for name in names if name.startswith(layer)} == half
    others = {name for name in names if ".layers." not in name}
    maps = ["stem.map", "stem.norm", "norm", "classes.1", *(f"stages.{n}.shrink.{p}" for n in (1, 2, 3) for p in PARTS)]
    assert others == {f"{name}.{part}" for name in maps for part in ("weight", "bias")}


PARTS = ("map", "norm")


def test_the_map_shown_is_the_map_in_use():
    davit = model(dtype=torch.float32)
    pixels = images(davit, rows=12, columns=12).float()  # two windows of 3 × 3 in each direction
    plain = davit.hidden(pixels)
    with weft.capture(davit, "stages.*.spatial.attention") as maps:
        assert torch.equal(davit.hidden(pixels), plain)
    assert len(maps) == 3
    seen = maps["stages.0.layers.0.spatial.attention"].weights
    assert seen.shape == (2, 2, 36, 36)
    assert int((seen[0, 0, 0] > 0).sum()) == 9
    assert torch.allclose(seen.sum(-1), torch.ones(()))


@pytest.mark.parametrize("hidden", [0, 5])
def test_the_default_begins_with_silent_branches_and_even_scores(hidden):
    davit = DaViTConfig(**SMALL, head={"classes": 4, "hidden": hidden}).build()
    pixels = torch.randn(5, 3, 12, 12)
    logits = davit(pixels)
    assert torch.equal(logits, torch.zeros(5, 4))
    assert F.cross_entropy(logits, torch.arange(5) % 4).item() == pytest.approx(math.log(4))
    layer = davit.stages[0].layers[0].spatial
    assert not layer.attention.output.weight.any() and not layer.feed_forward.down.weight.any()
    assert layer.attention.query.weight.std().item() == pytest.approx(1 / math.sqrt(8), rel=0.3)


def test_the_papers_sizes_begin_as_timms():
    davit = DaViTConfig(
        **{**DaViTConfig.presets["davit-tiny"], "widths": (32, 64), "depths": (1, 1), "strides": (4, 2)}
    ).build()
    layer = davit.stages[1].layers[0].channel
    for linear in (layer.attention.output, layer.feed_forward.down, davit.classes[1]):
        assert linear.weight.std().item() == pytest.approx(0.02, rel=0.1)
        assert not linear.bias.any()
    fan = 1 / math.sqrt(9)  # torch's own start of a convolution over nine places
    assert 0.9 * fan < layer.attention_positions.map.weight.abs().max().item() <= fan


def test_it_learns_by_heart():
    davit = DaViTConfig(**SMALL, channels=1, head={"classes": 4}).build()
    pixels, classes = torch.randn(12, 1, 12, 12), torch.arange(12) % 4
    optimizer = AdamWConfig(learning_rate=0.01).build(davit)
    for _ in range(40):
        loss = F.cross_entropy(davit(pixels), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.05


def test_dropout_acts_in_training_alone():
    davit = model(dropout=0.5)
    pixels = images(davit)
    assert torch.equal(davit.hidden(pixels), davit.hidden(pixels))
    davit.train()
    assert not torch.equal(davit.hidden(pixels), davit.hidden(pixels))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"widths": (64,)}, "1 widths, 2 depths, 2 strides\nexpected as many of each"),
        ({"widths": (), "depths": (), "strides": ()}, "0 widths, 0 depths, 0 strides"),
        ({"widths": (64, 100)}, "width 100\nexpected a multiple of head_width = 32"),
        ({"stem": 4}, "stem = 4\nexpected an odd number"),
        ({"strides": (2, 0)}, r"strides\[1\] = 0"),
    ],
)
def test_what_does_not_fit_together_is_refused(fields, words):
    with pytest.raises(ConfigError, match=words):
        DaViTConfig(**fields)


def test_what_is_no_image_is_refused():
    davit = model()
    for wrong in (torch.randn(2, 1, 9, 9), torch.randn(3, 9, 9)):
        with pytest.raises(ShapeError, match=r"expected \(B, 3, Y, X\)"):
            davit(wrong)
