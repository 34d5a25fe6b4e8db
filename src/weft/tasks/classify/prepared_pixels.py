"""One image prepared by two programs for the same model: the proof that their settings say what ours do."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.errors import DataError
from weft.images.arrays import ResizeCrop
from weft.images.decode import cut_out, pillow
from weft.models.preprocessing import Preprocessing
from weft.tasks.classify.image_data import as_input

MAX_LEVEL_DIFFERENCE = 1.5  # of 256 by which a pixel may differ: programs round in their own ways where they resize


def compare_pixels(given: Preprocessing, processor: Any) -> float:
    """How far the pixels of transformers' processor differ from ours at most, for an image that is no square; from 0
    to 1, before they are shifted and scaled. `DataError` if that is more than rounding."""
    size, channels = given.image_size, len(given.mean)
    shape = (size + size // 2 + 1, 2 * size + 3, channels)
    drawn = np.random.default_rng(7919).integers(0, 256, shape, dtype=np.uint8)
    image = pillow().fromarray(drawn if channels > 1 else drawn[:, :, 0])
    square = np.array(cut_out(image, size, ResizeCrop(given.crop, given.resample)))
    ours = as_input(np.atleast_3d(square).transpose(2, 0, 1)[None], given.mean, given.std).numpy()
    theirs = np.asarray(processor(image, return_tensors="np")["pixel_values"])
    if theirs.shape != ours.shape:
        raise DataError(f"opened by transformers, images become {theirs.shape}, not {ours.shape}")
    scale = np.array(given.std, dtype=np.float32)[:, None, None]
    apart = float(np.abs((theirs - ours) * scale).max())
    if not apart <= MAX_LEVEL_DIFFERENCE / 255:
        raise DataError(
            f"opened by transformers, the folder prepares images that differ by {apart:.2g}",
            expected="the same pixels",
            advice="nothing was exported; please report this",
        )
    return apart
