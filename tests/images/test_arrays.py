"""Arrays in the usual forms become the same pixels; what is ambiguous or out of range is refused in words."""

import numpy as np
import pytest
import torch
from PIL import Image

from weft.errors import ConfigError, DataError
from weft.images.allocate import allocate
from weft.images.arrays import fit, grey, is_grey, of_array
from weft.images.decode import decode

RNG = np.random.default_rng(0)
GREYS = RNG.integers(0, 256, (5, 9, 7), dtype=np.uint8)
COLOURS = RNG.integers(0, 256, (5, 9, 7, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    "given",
    [
        GREYS,
        GREYS[..., None],
        GREYS[:, None],
        GREYS.astype(np.uint16) * 257,
        GREYS.astype(np.float64) / 255,
        GREYS.astype(np.float32) / 255,
        GREYS.astype(np.int64),
        GREYS.tolist(),
        torch.from_numpy(GREYS),
        np.asfortranarray(GREYS),
    ],
    ids=["plain", "last", "first", "uint16", "float64", "float32", "int64", "lists", "torch", "fortran"],
)
def test_the_same_images_in_many_forms(given):
    pixels = of_array(given)
    assert pixels.shape == (5, 1, 9, 7) and pixels.dtype == np.uint8
    np.testing.assert_array_equal(pixels[:, 0], GREYS)


def test_colours_and_opacity():
    first = COLOURS.transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(of_array(COLOURS), first)
    np.testing.assert_array_equal(of_array(first), first)
    opaque = np.concatenate([COLOURS, np.full((5, 9, 7, 1), 255, np.uint8)], axis=-1)
    np.testing.assert_array_equal(of_array(opaque), first)
    opaque[..., 3] = 0
    assert (of_array(opaque) == 255).all(), "nothing but white"


def test_yes_and_no():
    assert np.unique(of_array(GREYS > 100)).tolist() == [0, 255]


def test_half_precision_and_a_little_overshoot():
    assert of_array(np.array([[[0.5, 1.0004, -0.0004]]], np.float16)).ravel().tolist() == [128, 255, 0]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (GREYS[0], r"shape \(9, 7\)(.|\n)*array\[None\]"),
        (GREYS[None, None], r"shape \(1, 1, 5, 9, 7\)"),
        (np.zeros((5, 9, 7, 2), np.uint8), "1, 3 or 4 channels"),
        (np.zeros((5, 3, 8, 3), np.uint8), "first or last"),
        (np.zeros((0, 9, 7), np.uint8), "at least one image"),
        (np.zeros((2, 0, 7), np.uint8), "at least one image"),
        (GREYS.astype(np.float32), r"fractions from 0 to 255(.|\n)*divide it by 255"),
        (GREYS / 255 - 0.5, "shift and scale"),
        (np.full((1, 4, 4), np.nan), "not finite"),
        (np.full((1, 4, 4), np.inf), "not finite"),
        (GREYS.astype(np.int32) - 1, "from -1 to 25"),
        (GREYS.astype(np.int32) * 257, "uint16"),
        (GREYS.astype(str), "holds <U"),
        (GREYS.astype(object), "holds object"),
        (GREYS.astype(complex), "holds complex"),
        ([[[1, 2]], [[1]]], "rows differ"),
    ],
)
def test_what_cannot_be_read(given, said):
    with pytest.raises(DataError, match=said):
        of_array(given, "x")


def test_fit_does_what_decode_does(tmp_path):
    """Arrays need no Pillow, and still look as if they had been files."""
    y, x = np.mgrid[:50, :72]
    pixels = np.stack([(x * 3) % 256, y * 5, (x * y) % 200], axis=-1).astype(np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    for size in (50, 31, 64, 8):
        for channels in (1, 3):
            ours = fit(of_array(pixels[None]), channels=channels, size=size)[0]
            theirs = decode(tmp_path / "a.png", channels=channels, size=size)
            assert ours.shape == theirs.shape
            far = abs(ours.astype(int) - theirs).max()
            assert far <= (2 if size > 25 else 24), (size, channels, far)  # far smaller: a file is reduced in two steps


def test_fit_keeps_what_fits():
    pixels = of_array(GREYS[:, :7])
    assert fit(pixels, channels=1, size=7) is pixels
    np.testing.assert_array_equal(fit(pixels, channels=3, size=7)[:, 2], pixels[:, 0])
    np.testing.assert_array_equal(fit(of_array(GREYS), channels=1, size=7)[:, 0], GREYS[:, 1:8])
    with pytest.raises(ConfigError, match="channels = 2"):
        fit(pixels, channels=2, size=7)


def test_grey():
    pixels = of_array(COLOURS)
    expected = [np.asarray(Image.fromarray(image).convert("L")) for image in COLOURS]
    np.testing.assert_array_equal(grey(pixels)[:, 0], expected)
    assert not is_grey(pixels)
    repeated = np.repeat(of_array(GREYS), 3, axis=1)
    assert is_grey(repeated)
    repeated[4, 2, 8, 6] ^= 1
    assert not is_grey(repeated)


def test_much_is_kept_in_a_file(monkeypatch, tmp_path):
    assert not isinstance(allocate((10, 10)), np.memmap)
    monkeypatch.setattr("weft.images.allocate.IN_MEMORY", 99)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    large = allocate((10, 10))
    assert isinstance(large, np.memmap)
    large[:] = 7
    assert (large == 7).all() and not list(tmp_path.iterdir()), "the file has no name, and goes with the program"
    with pytest.raises(DataError, match="TMPDIR"):
        allocate((1 << 30, 1 << 30))
