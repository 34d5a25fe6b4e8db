"""One image file as an array: decoded strictly, upright, on white, in 8 bits, and cut to a square.

Only raster formats are opened, each by its own decoder, chosen by the first bytes of the file and not by its name.
Nothing here needs torch: worker processes import this file.
"""

from __future__ import annotations

import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weft.errors import ConfigError, DataError
from weft.images.arrays import ResizeCrop, eight_bits, middle, without_ends
from weft.images.formats import READ, format_of

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_PIXELS = 100_000_000  # of one image, by its header: more is no photograph, or a trap
GAP = 2  # a big image is first reduced by whole numbers to so many times the size that is wanted
ORIENTATION = 0x0112  # the place in EXIF that says how the camera was held
UPRIGHT = {  # by the names of Pillow's moves
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}
GREY = ("1", "L", "LA", "La", "I", "F")
CLEAR = ("LA", "La", "PA", "RGBA", "RGBa")  # modes in which places can be transparent
MISSING = 'pip install "weft[vision]"'


class Header(NamedTuple):
    """What a file says about its image before it is decoded."""

    width: int
    height: int
    grey: bool


def decode(path: str | Path, *, channels: Literal[1, 3], size: int, cut: ResizeCrop | None = None) -> NDArray[np.uint8]:
    """The image in a file as (channels, size, size), 0…255.

    It is turned as EXIF says, laid over white where it is transparent, and of an animation only the first frame is
    seen. The shorter side becomes `size`, and of the longer one the middle is taken: nothing is distorted, and
    edges are lost. 16-bit greys are scaled to 8 bits. What is damaged, cut short or too big is refused.

    `cut` is another way to make the square, done exactly as others do it; ours reduces big images first, which is
    faster.
    """
    if channels not in (1, 3) or size < 1:
        raise ConfigError(f"channels = {channels}, size = {size}", expected="1 or 3 channels, a size of 1 or more")
    with _opened(Path(path)) as image:
        if cut is None:
            image.draft(None, (GAP * size, GAP * size))  # JPEG only: most of the work is never done
        image.load()
        flat = _flat(_upright(image), channels, str(path))
        square = _square(flat, size) if cut is None else cut_out(flat, size, cut)
        pixels = np.asarray(square)
    return np.ascontiguousarray(pixels[None] if channels == 1 else pixels.transpose(2, 0, 1))


def look(path: str | Path) -> Header:
    """Size and greyness of an image by its header; nothing is decoded."""
    with _opened(Path(path)) as image:
        return Header(*image.size, image.mode in GREY or image.mode.startswith("I;16"))


def pillow(module: str = "Image") -> Any:
    """A module of Pillow, which is an extra."""
    try:
        return import_module(f"PIL.{module}")
    except ImportError:
        raise DataError("Pillow is not installed: image files cannot be read", advice=MISSING) from None


@contextmanager
def _opened(path: Path) -> Iterator[Image]:
    """An image whose header was read; whatever goes wrong with it inside is an error that names the file."""
    pil = pillow()
    found = ""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise DataError(f"{path} is a folder, a device or a pipe", expected="an image file")
        with path.open("rb") as file, warnings.catch_warnings(action="ignore"):
            head = file.read(32)
            found = format_of(head)
            if not found:
                raise _no_image(path, head)
            file.seek(0)
            image = pil.open(file, formats=(found,))
            width, height = image.size
            if width * height > MOST_PIXELS:
                raise _too_big(path, f"{width} × {height} pixels")
            yield image
    except DataError:
        raise
    except pil.DecompressionBombError:  # Pillow's own limit is higher, but asked earlier
        raise _too_big(path, "more pixels") from None
    except MemoryError:
        raise _too_big(path, "more pixels than there is memory for") from None
    except Exception as error:  # on damaged files Pillow raises almost anything
        if isinstance(error, FileNotFoundError):
            raise DataError(f"{path} does not exist") from None
        if isinstance(error, OSError) and error.strerror:
            raise DataError(f"{path} cannot be read: {error.strerror}") from None
        why = " ".join(str(error).replace(str(path), "").split())[:100]
        given = f"{path} is a damaged {found} image{f': {why}' if why else ''}"
        raise DataError(given, advice="copy or download it again") from None


def _no_image(path: Path, head: bytes) -> DataError:
    if not head:
        return DataError(f"{path} is empty", expected="an image")
    control = any(byte < 9 or 13 < byte < 32 for byte in head)
    kind = "is text" if not control else "is no image that can be read"
    return DataError(f"{path} {kind}, whatever its name says", expected=f"a {READ} file")


def _too_big(path: Path, what: str) -> DataError:
    given = f"{path} has {what}"
    return DataError(given, expected=f"at most {MOST_PIXELS // 10**6} million", advice="make it smaller first")


def _upright(image: Image) -> Image:
    """Turned as EXIF says; what cannot be read there says nothing."""
    try:
        move = UPRIGHT.get(image.getexif().get(ORIENTATION, 1))
    except Exception:  # a damaged note about an image does not damage the image
        move = None
    return image if move is None else image.transpose(getattr(pillow().Transpose, move))


def _flat(image: Image, channels: int, name: str) -> Image:
    """8 bits for each channel, without transparency: grey, or red, green and blue."""
    if image.mode.startswith("I") or image.mode == "F":
        image = _from_deep(image, name)
    elif image.mode in CLEAR or "transparency" in image.info:
        coloured = image.convert("RGBA")
        pil = pillow()
        image = pil.alpha_composite(pil.new("RGBA", coloured.size, "white"), coloured).convert("RGB")
    elif image.mode not in ("1", "L", "RGB"):  # palette, CMYK, YCbCr, …
        image = image.convert("RGB")
    wanted = "L" if channels == 1 else "RGB"
    return image if image.mode == wanted else image.convert(wanted)


def _from_deep(image: Image, name: str) -> Image:
    """Greys of 16 bits, or of 32 bits that hold 16 or 0…1, as 8 bits: scaled, not clipped."""
    values = np.asarray(image)
    if image.mode == "I":
        if values.min() < 0 or values.max() > 0xFFFF:
            raise DataError(f"{name} holds greys from {values.min()} to {values.max()}", expected="8 or 16 bits")
        values = values.astype(np.uint16)
    return pillow().fromarray(eight_bits(values, name))


def _square(image: Image, size: int) -> Image:
    """The middle square, made `size` wide; antialiased."""
    width, height = image.size
    top, left, side = middle(height, width)
    if width != height:
        image = image.crop((left, top, left + side, top + side))
    if side == size:
        return image
    return image.resize((size, size), pillow().Resampling.BICUBIC, reducing_gap=GAP)


def cut_out(image: Image, size: int, cut: ResizeCrop) -> Image:
    """The whole image resized, then the middle square, as transformers and timm do it."""
    width, height = image.size
    top, left, height, width = without_ends(height, width)
    if (width, height) != image.size:
        image = image.crop((left, top, left + width, top + height))
    rows, columns = cut.resized(height, width, size)
    if (columns, rows) != image.size:
        image = image.resize((columns, rows), pillow().Resampling[cut.resample.upper()])
    down, right = (rows - size) // 2, (columns - size) // 2
    return image.crop((right, down, right + size, down + size))
