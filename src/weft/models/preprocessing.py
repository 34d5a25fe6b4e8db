"""Preprocessing: how an image is resized, cropped and normalised before an imported model reads it.

Hugging Face has a file of its own for it, preprocessor_config.json; timm has it in config.json, as `pretrained_cfg`.
"""

from __future__ import annotations

import math
from typing import Any, Literal

from weft.config import Config, Share, Size
from weft.errors import ConfigError, DataError, UnsupportedError
from weft.models.hugging_face_config import HuggingFaceConfig

PREPROCESSOR = "preprocessor_config.json"
Resample = Literal["nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"]
# as Pillow counts them
RESAMPLE_BY_NUMBER: tuple[Resample, ...] = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")
HALF = (0.5, 0.5, 0.5)
MIN_UNCROPPED_SIZE = 384  # their ConvNeXt's processor does not crop images of this size and larger
DEFAULT_CROP = 0.875  # what it crops others to, if the file says nothing


class Preprocessing(Config):
    """An image to `image_size` rows and columns, then (pixel / 255 − mean) / std in each channel.

    `crop` None: the whole image is squeezed into the square. A number: its shorter side becomes image_size / crop, and
    the middle is cut out.
    """

    image_size: Size = 224
    mean: tuple[float, ...] = HALF
    std: tuple[float, ...] = HALF
    resample: Resample = "bilinear"
    crop: Share | None = None

    def check(self) -> None:
        if len(self.mean) != len(self.std) or not self.mean:
            raise ConfigError(f"{len(self.mean)} means and {len(self.std)} deviations", expected="one for each channel")
        if not all(0 < deviation for deviation in self.std):
            raise ConfigError(f"std = {self.std}", expected="numbers above 0")
        if self.crop == 0:
            raise ConfigError("crop = 0", expected="above 0: the share of the image that is left")


def read_preprocessing(theirs: HuggingFaceConfig) -> Preprocessing:
    """From Hugging Face's file; what would give other pixels is refused."""
    theirs.must_be("do_resize", True, why="images are always brought to one size in Weft")
    theirs.must_be("do_rescale", True, why="pixels are always divided by 255 in Weft")
    if abs(255 * theirs.number("rescale_factor", 1 / 255) - 1) > 1e-6:
        raise UnsupportedError(f"{theirs.where}: rescale_factor = {theirs.number('rescale_factor')}", expected="1/255")
    resample = theirs.values.get("resample", 2)
    if type(resample) is not int or not 0 <= resample < len(RESAMPLE_BY_NUMBER):
        raise DataError(f"{theirs.where}: resample = {str(resample)[:40]}", expected="a number from 0 to 5")
    image_size, crop = _size(theirs)
    mean, std = (_numbers(theirs, key, HALF) for key in ("image_mean", "image_std"))
    if not theirs.flag("do_normalize", True):
        mean, std = (0.0,) * len(mean), (1.0,) * len(std)
    return _made(theirs, image_size=image_size, mean=mean, std=std, resample=RESAMPLE_BY_NUMBER[resample], crop=crop)


def read_timm_preprocessing(theirs: HuggingFaceConfig) -> Preprocessing:
    """From timm's `pretrained_cfg`: its preprocessing for evaluation."""
    told = HuggingFaceConfig(theirs.table("pretrained_cfg"), f"{theirs.where}: pretrained_cfg")
    told.must_be("crop_mode", "center", "squash", None, why="other ways to cut an image are not known here")
    shape = told.sizes("input_size")
    return _made(
        theirs,
        image_size=HuggingFaceConfig({"input_size": shape[1:]}, told.where).side("input_size"),
        mean=_numbers(told, "mean", (0.485, 0.456, 0.406)),
        std=_numbers(told, "std", (0.229, 0.224, 0.225)),
        resample=told.word("interpolation", {name: name for name in RESAMPLE_BY_NUMBER}, "bicubic"),
        crop=None if told.values.get("crop_mode") == "squash" else told.number("crop_pct", DEFAULT_CROP),
    )


def preprocessing_settings(given: Preprocessing) -> dict[str, Any]:
    """Their preprocessor_config.json."""
    size, pressed = given.image_size, given.crop is None
    about: dict[str, Any] = {"image_processor_type": "ViTImageProcessor", "size": {"height": size, "width": size}}
    if not pressed and size < MIN_UNCROPPED_SIZE:
        about = {"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": size}}
        about["crop_pct"] = given.crop
    elif given.crop is not None:
        raise UnsupportedError(
            f"images of {size} × {size} that are cut out of larger ones",
            expected=f"less than {MIN_UNCROPPED_SIZE}, or whole images squeezed into the square",
        )
    return about | {
        "do_resize": True,
        "resample": RESAMPLE_BY_NUMBER.index(given.resample),
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": list(given.mean),
        "image_std": list(given.std),
    }


def _size(theirs: HuggingFaceConfig) -> tuple[int, float | None]:
    """How large images become, and which share of them is left."""
    given = theirs.values.get("size")
    size = HuggingFaceConfig(given if isinstance(given, dict) else {"side": given}, f"{theirs.where}: size")
    shortest = "shortest_edge" in size.values or ("crop_pct" in theirs.values and "side" in size.values)
    if theirs.flag("do_center_crop", False):
        if "shortest_edge" not in size.values:
            raise UnsupportedError(f"{theirs.where}: a square of which the middle is cut out", expected="shortest_edge")
        cut = theirs.values.get("crop_size")
        image_size = _square(
            HuggingFaceConfig(cut if isinstance(cut, dict) else {"side": cut}, f"{theirs.where}: crop_size")
        )
        edge = size.size("shortest_edge")
        crop = image_size / edge
        return image_size, crop if int(image_size / crop) == edge else math.nextafter(crop, 0)  # the same edge again
    if not shortest:
        return _square(size), None
    edge = size.size("shortest_edge" if "shortest_edge" in size.values else "side")
    return edge, theirs.number("crop_pct", DEFAULT_CROP) if edge < MIN_UNCROPPED_SIZE else None


def _square(size: HuggingFaceConfig) -> int:
    if "side" in size.values:
        return size.side("side")
    return HuggingFaceConfig({"size": [size.size("height"), size.size("width")]}, size.where).side("size")


def _numbers(theirs: HuggingFaceConfig, key: str, default: tuple[float, ...]) -> tuple[float, ...]:
    value = theirs.values.get(key)
    value = default if value is None else value
    if not isinstance(value, list | tuple):
        raise DataError(f"{theirs.where}: {key} = {str(value)[:40]}", expected="a number for each channel")
    return tuple(HuggingFaceConfig({key: item}, theirs.where).number(key) for item in value)


def _made(theirs: HuggingFaceConfig, **fields: Any) -> Preprocessing:
    try:
        return Preprocessing(**fields)
    except ConfigError as error:
        raise DataError(f"{theirs.where}: {error}") from None
