"""Images that come with scikit-learn: 1797 handwritten digits of 8 × 8 (from UCI's optical recognition of digits)."""

from __future__ import annotations

from importlib import import_module

import numpy as np

from weft.data.image_set import Images
from weft.data.split import stratified_split
from weft.errors import ConfigError, DataError, did_you_mean
from weft.images.decode import MISSING

PARTS = ("train", "test")
SHARE = 0.2  # held out for the test
DARKEST = 16


def demo_images(part: str = "train") -> Images:
    """The digits to learn from (`train`) or to test by (`test`); the same on every call."""
    if part not in PARTS:
        raise ConfigError(f"part = {part!r}", advice=did_you_mean(part, PARTS))
    try:
        digits = import_module("sklearn.datasets").load_digits()
    except ImportError:
        given = "scikit-learn is not installed: it brings the digits along"
        raise DataError(given, advice=MISSING) from None
    pixels = np.rint(digits.images * 255 / DARKEST).astype(np.uint8)
    everything = Images.of(pixels, digits.target, name="demo")
    learn, judge = stratified_split(everything.labels, SHARE, seed=0, groups=everything.keys())
    return everything.part(learn if part == "train" else judge)
