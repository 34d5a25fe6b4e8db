"""Augmentation is a pure function of seed and sample number, and changes what it says."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from weft.data.augmentation import Augmentation, AugmentConfig, mirrors_well, partners, strength_for
from weft.errors import ConfigError

NOTHING = {"strength": 1.0} | dict.fromkeys(
    ("shift", "turn", "zoom", "shear", "mirror", "colour", "erase", "mixup", "cutmix"), 0.0
)


def images(count=16):
    torch.manual_seed(1)
    return torch.randn(count, 1, 12, 12)


def test_nothing_asked_for_changes_nothing():
    assert torch.equal(Augmentation(AugmentConfig(**NOTHING), 0).changed(images(), np.arange(16)), images())


@pytest.mark.parametrize(
    "what", [{"shift": 0.2}, {"turn": 20.0}, {"zoom": 0.3}, {"shear": 0.3}, {"colour": 0.5}, {"erase": 1.0}]
)
def test_each_change_is_a_pure_function_of_the_sample_number(what):
    augmentation = Augmentation(AugmentConfig(**NOTHING | what), seed=3)
    together = augmentation.changed(images(), np.arange(16))
    assert not torch.allclose(together, images())
    for some in (np.arange(4, 9), np.array([7]), np.array([15, 0, 3])):
        alone = augmentation.changed(images()[torch.from_numpy(some)], some)
        assert torch.allclose(alone, together[torch.from_numpy(some)], atol=1e-6)
    later = augmentation.changed(images(), np.arange(16) + 16)
    assert not torch.allclose(later, together), "the next epoch shows something else"
    assert not torch.allclose(
        Augmentation(AugmentConfig(**NOTHING | what), seed=4).changed(images(), np.arange(16)), together
    )


def test_strength_scales_the_changes():
    full, tenth = (
        Augmentation(AugmentConfig(**NOTHING | {"colour": 0.5, "strength": strength}), 0).changed(
            images(), np.arange(16)
        )
        for strength in (1.0, 0.1)
    )
    assert 0 < float((tenth - images()).abs().mean()) < 0.2 * float((full - images()).abs().mean())
    assert strength_for(0.5) < strength_for(10) < strength_for(40) == strength_for(400) == 1.0


def test_half_of_the_images_are_mirrored():
    many = images(400)
    changed = Augmentation(AugmentConfig(**NOTHING | {"mirror": 0.5}), 0).changed(many, np.arange(400))
    mirrored = (changed - many.flip(-1)).abs().amax((1, 2, 3)) < 1e-4
    assert 160 < int(mirrored.sum()) < 240


@pytest.mark.parametrize("what", [{"mixup": 1.0}, {"cutmix": 1.0}, {"mixup": 0.5, "cutmix": 0.5}])
def test_mixed_labels_have_the_shares_of_the_pixels(what):
    numbers = np.arange(32)
    white, black = torch.ones(32, 1, 20, 20), torch.zeros(32, 1, 20, 20)
    mine, others = torch.tensor([[1.0, 0.0]]).expand(32, 2), torch.tensor([[0.0, 1.0]]).expand(32, 2)
    pixels, labels = Augmentation(AugmentConfig(**NOTHING | what), 0).mixed(white, mine, black, others, numbers)
    assert torch.allclose(labels.sum(1), torch.ones(32))
    assert torch.allclose(labels[:, 0], pixels.mean((1, 2, 3)), atol=1e-5)
    assert 0.2 < float(labels[:, 0].mean()) < 0.9 and float(labels[:, 0].std()) > 0.1


def test_partners_are_mutual_and_in_the_same_even_batch():
    numbers = np.arange(64, 128)
    assert (partners(partners(numbers)) == numbers).all()
    assert set(partners(numbers)) == set(numbers) and (partners(numbers) != numbers).all()


def test_too_much_is_refused():
    with pytest.raises(ConfigError, match="together"):
        AugmentConfig(mixup=0.7, cutmix=0.7)
    with pytest.raises(ConfigError, match="zoom"):
        AugmentConfig(zoom=1.0)


def test_digits_do_not_mirror_and_symmetric_things_do():
    random = np.random.default_rng(0)
    left = np.zeros((1, 8, 8))
    left[:, :, :3] = 200
    sides = np.concatenate([np.repeat(left[None], 50, 0), np.repeat(left[None, ..., ::-1], 50, 0)])
    noisy = (sides + random.normal(0, 10, sides.shape)).clip(0, 255).astype(np.uint8)
    labels = np.repeat([0, 1], 50)
    assert not mirrors_well(noisy, labels), "left and right are the two classes"
    rows = np.zeros((2, 1, 8, 8))
    rows[0, :, :4], rows[1, :, 4:] = 200, 200
    upright = np.repeat(rows, 50, 0) + random.normal(0, 10, (100, 1, 8, 8))
    assert mirrors_well(upright.clip(0, 255).astype(np.uint8), labels)
