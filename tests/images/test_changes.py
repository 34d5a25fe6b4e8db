"""Changes of images, against what they must leave and what they must do."""

from __future__ import annotations

import pytest
import torch

from weft.images.changes import Movement, blended, erased, moved, pasted, recoloured

ZERO = torch.zeros(2)
ONE = torch.ones(2)


def movement(**given):
    still = {"angle": ZERO, "shear": ZERO, "zoom": ONE, "down": ZERO, "right": ZERO, "mirror": ONE}
    return Movement(**(still | {name: torch.full((2,), value) for name, value in given.items()}))


@pytest.fixture
def pixels():
    torch.manual_seed(0)
    return torch.randn(2, 3, 8, 8)


def test_no_movement_leaves_the_image(pixels):
    assert torch.allclose(moved(pixels, movement()), pixels, atol=1e-6)


def test_a_image_moves_by_whole_pixels_and_its_border_is_continued(pixels):
    down = moved(pixels, movement(down=2 / 8))
    assert torch.allclose(down[:, :, 2:], pixels[:, :, :-2], atol=1e-5)
    assert torch.allclose(down[:, :, :2], pixels[:, :, :1].expand(-1, -1, 2, -1), atol=1e-5)
    right = moved(pixels, movement(right=3 / 8))
    assert torch.allclose(right[..., 3:], pixels[..., :-3], atol=1e-5)


def test_a_mirrored_image_is_flipped(pixels):
    assert torch.allclose(moved(pixels, movement(mirror=-1.0)), pixels.flip(-1), atol=1e-5)


def test_a_quarter_turn_is_a_rotation(pixels):
    turned = moved(pixels, movement(angle=torch.pi / 2))
    assert torch.allclose(turned, pixels.rot90(1, (2, 3)), atol=1e-4)


def test_zoom_enlarges_the_middle():
    image = torch.zeros(1, 1, 9, 9)
    image[..., 4, 4] = 1.0
    still = {"angle": 0.0, "shear": 0.0, "zoom": 2.0, "down": 0.0, "right": 0.0, "mirror": 1.0}
    larger = moved(image, Movement(**{name: torch.tensor([value]) for name, value in still.items()}))
    assert larger.sum() > 2 * image.sum()
    assert torch.allclose(larger, larger.flip(-1)) and torch.allclose(larger, larger.flip(-2))


def test_each_image_has_its_own_movement(pixels):
    still = movement()
    one = Movement(still.angle, still.shear, still.zoom, torch.tensor([0.0, 0.25]), still.right, still.mirror)
    changed = moved(pixels, one)
    assert torch.allclose(changed[0], pixels[0], atol=1e-6)
    assert not torch.allclose(changed[1], pixels[1], atol=1e-2)


def test_contrast_keeps_the_mean_and_brightness_moves_it(pixels):
    strong = recoloured(pixels, torch.tensor([2.0, 1.0]), torch.tensor([0.0, 0.5]))
    assert torch.allclose(strong[0].mean(), pixels[0].mean(), atol=1e-5)
    assert torch.allclose(strong[0].std(), 2 * pixels[0].std(), rtol=1e-4)
    assert torch.allclose(strong[1], pixels[1] + 0.5, atol=1e-6)


def test_a_box_is_erased_and_nothing_else(pixels):
    boxes = torch.tensor([[0.5, 0.5, 0.25, 0.25], [0.5, 0.5, 0.0, 0.0]])
    gone = erased(pixels, boxes)
    assert (gone[0, :, 2:6, 2:6] == 0).all()
    outside = torch.ones(8, 8, dtype=torch.bool)
    outside[2:6, 2:6] = False
    assert torch.equal(gone[0][:, outside], pixels[0][:, outside])
    assert torch.equal(gone[1], pixels[1])


def test_blending_and_pasting_say_how_much_is_left(pixels):
    others = pixels.flip(0)
    half = blended(pixels, others, torch.tensor([0.25, 1.0]))
    assert torch.allclose(half[0], 0.25 * pixels[0] + 0.75 * pixels[1], atol=1e-6)
    assert torch.allclose(half[1], pixels[1])
    boxes = torch.tensor([[0.0, 0.0, 0.5, 0.5], [0.5, 0.5, 0.0, 0.0]])
    both, left = pasted(pixels, others, boxes)
    assert left.tolist() == [0.75, 1.0]
    assert torch.equal(both[0, :, :4, :4], pixels[1, :, :4, :4])
    assert torch.equal(both[0, :, 4:], pixels[0, :, 4:])
