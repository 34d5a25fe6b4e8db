"""Arrays as people have them, as pixels (N, channels, Y, X) of 8 bits, and pixels brought to one size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weft.errors import ConfigError, DataError, UnsupportedError
from weft.images.allocate import allocate

Pixels = NDArray[np.uint8]
CHUNK = 1 << 24  # numbers that are worked on at a time
COUNTS = (1, 3, 4)  # channels: grey, colour, colour with transparency
LUMA = (19595, 38470, 7471)  # 65536 × (0.299, 0.587, 0.114), the weights of red, green and blue in a grey (ITU-R 601)
FORMS = "(N, Y, X), (N, Y, X, channels) or (N, channels, Y, X) with 1, 3 or 4 channels"
WAYS = ("bilinear", "bicubic")  # of resizing, that torch has as Pillow has them
LONGEST = 4  # times its width that an image may be high before its ends are left out: they would be cut off anyway
RANGES = "8 or 16 bits, fractions from 0 to 1, or true and false"


class ResizeCrop(NamedTuple):
    """How a model from elsewhere wants an image made into a square, to the letter.

    `crop` None: all of it is pressed into the square. A number: the shorter side becomes size / crop, rounded down, and
    then the middle is cut out. `resample` is one of Pillow's filters: nearest, bilinear, bicubic, lanczos, box,
    hamming.
    """

    crop: float | None = None
    resample: str = "bilinear"

    def resized(self, height: int, width: int, size: int) -> tuple[int, int]:
        """Rows and columns that an image gets before the middle is cut out."""
        if self.crop is None:
            return size, size
        edge = int(size / self.crop)
        long = int(edge * max(height, width) / min(height, width))
        return (long, edge) if height > width else (edge, long)


def of_array(array: Any, name: str = "the array") -> Pixels:
    """Images in an array of any usual form as (N, channels, Y, X), with 1 or 3 channels of 8 bits.

    uint8 is taken as it is, uint16 and fractions from 0 to 1 are scaled, and a fourth channel is opacity: white
    shines through.
    """
    try:
        values = np.asarray(array)
    except (ValueError, TypeError, RuntimeError):
        raise DataError(f"{name} is no array: its rows differ in length", expected=FORMS) from None
    if values.dtype.kind not in "buif":
        raise DataError(f"{name} holds {values.dtype}", expected=f"images as numbers: {RANGES}")
    values = _channels_first(values, name)
    if values.shape[1] != 4:
        return eight_bits(values, name)
    pixels = allocate((len(values), 3, *values.shape[2:]))
    for part in chunks(values.shape):
        shown = eight_bits(values[part], name).astype(np.uint32)
        opacity = shown[:, 3:]
        pixels[part] = (shown[:, :3] * opacity + 255 * (255 - opacity) + 127) // 255
    return pixels


def _channels_first(values: NDArray[Any], name: str) -> NDArray[Any]:
    shape = values.shape
    given = f"{name} has the shape {shape}"
    if values.ndim not in (3, 4):
        advice = "one image alone is array[None]" if values.ndim == 2 else ""
        raise DataError(given, expected=FORMS, advice=advice)
    if 0 in shape:
        raise DataError(given, expected="at least one image of at least one pixel")
    if values.ndim == 3:
        return values[:, None]
    first, last = shape[1] in COUNTS, shape[3] in COUNTS
    if first and last and shape[2] > 1:
        raise DataError(f"{given}: are the channels first or last?", expected="images larger than 4 pixels")
    if not first and not last:
        raise DataError(given, expected=FORMS)
    return values if first and not last else values.transpose(0, 3, 1, 2)


def eight_bits(values: NDArray[Any], name: str) -> Pixels:
    """Numbers of any usual depth as 0…255; the shape stays."""
    if values.dtype == np.uint8:
        return np.ascontiguousarray(values)
    _refuse_range(values, name)
    result = allocate(values.shape)
    for part in chunks(values.shape):
        piece = values[part]
        if piece.dtype == np.bool_:
            result[part] = piece * np.uint8(255)
        elif piece.dtype == np.uint16:
            result[part] = (piece.astype(np.uint32) * 255 + 32767) // 65535
        elif piece.dtype.kind == "f":
            result[part] = np.rint(np.clip(piece.astype(np.float32), 0, 1) * 255)
        else:
            result[part] = piece
    return result


def _refuse_range(values: NDArray[Any], name: str) -> None:
    if values.dtype in (np.bool_, np.uint16):
        return
    low, high = values.min(), values.max()
    fraction = values.dtype.kind == "f"
    if fraction and not (np.isfinite(low) and np.isfinite(high)):
        raise DataError(f"{name} holds numbers that are not finite", expected=f"images: {RANGES}")
    if fraction and (low < -1e-3 or high > 1 + 1e-3):  # resizing by others overshoots a little
        advice = "divide it by 255" if low >= 0 and 1 < high <= 255 else "shift and scale it"
        raise DataError(f"{name} holds fractions from {low:g} to {high:g}", expected="0 to 1", advice=advice)
    if not fraction and (low < 0 or high > 255):
        given = f"{name} holds {values.dtype} from {low} to {high}"
        raise DataError(given, expected="0 to 255", advice="16-bit images are of the type uint16")


def chunks(shape: tuple[int, ...]) -> Iterator[slice]:
    """Parts of an array along its first axis, each small enough to be worked on."""
    step = max(1, CHUNK // max(1, int(np.prod(shape[1:]))))
    return (slice(start, start + step) for start in range(0, shape[0], step))


def middle(height: int, width: int) -> tuple[int, int, int]:
    """Top, left and side of the largest square in the middle."""
    side = min(height, width)
    return (height - side) // 2, (width - side) // 2, side


def without_ends(height: int, width: int) -> tuple[int, int, int, int]:
    """Top, left, rows and columns of what is left of an image that is absurdly long."""
    rows, columns = min(height, LONGEST * width), min(width, LONGEST * height)
    return (height - rows) // 2, (width - columns) // 2, rows, columns


def fit(pixels: Pixels, *, channels: int, size: int, cut: ResizeCrop | None = None) -> Pixels:
    """Pixels (N, C, Y, X) as (N, channels, size, size): what `decode` does to a file.

    The shorter side becomes `size` and the middle of the longer one is taken, unless `cut` says otherwise; colours
    become greys by their brightness.
    """
    if channels not in (1, 3) or size < 1:
        raise ConfigError(f"channels = {channels}, size = {size}", expected="1 or 3 channels, a size of 1 or more")
    count, had, height, width = pixels.shape
    top, left, rows, columns = (
        (*middle(height, width), min(height, width)) if cut is None else without_ends(height, width)
    )
    new = (size, size) if cut is None else cut.resized(rows, columns, size)
    if (had, height, width) == (channels, size, size) and new == (size, size):
        return pixels
    down, right = ((side - size) // 2 for side in new)
    result = allocate((count, channels, size, size))
    for part in chunks(pixels.shape):
        piece = pixels[part, :, top : top + rows, left : left + columns]
        if had == 3 and channels == 1:
            piece = grey(piece)
        if new != (rows, columns):
            piece = _resized(piece, new, "bicubic" if cut is None else cut.resample)
        result[part] = piece[:, :, down : down + size, right : right + size]  # one channel is repeated
    return result


def grey(pixels: Pixels) -> Pixels:
    """Red, green and blue (N, 3, Y, X) as their brightness (N, 1, Y, X), rounded as Pillow does."""
    red, green, blue = (pixels[:, place].astype(np.uint32) * weight for place, weight in enumerate(LUMA))
    return ((red + green + blue + 0x8000) >> 16).astype(np.uint8)[:, None]


def is_grey(pixels: Pixels) -> bool:
    """Whether red, green and blue are equal in all places."""
    return all(
        np.array_equal(pixels[part, 0], pixels[part, other]) for part in chunks(pixels.shape) for other in (1, 2)
    )


def _resized(pixels: Pixels, size: tuple[int, int], way: str) -> Pixels:
    """Antialiased, by torch: arrays need no Pillow."""
    if way not in WAYS:
        raise UnsupportedError(f"arrays resized by {way}", expected=", ".join(WAYS), advice="give image files")
    import torch
    import torch.nn.functional as F

    tensor = torch.from_numpy(np.ascontiguousarray(pixels))
    resized = F.interpolate(tensor, size=size, mode=way, antialias=True)
    return resized.numpy()
