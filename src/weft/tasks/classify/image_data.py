"""Labelled images as the data of a run: read, split, and recorded so that a resume can check them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from weft.config import Share, Size
from weft.data import Labels, stratified_split
from weft.data.image_demo import demo_images
from weft.data.images import Images, ImageSource, read_images
from weft.errors import ConfigError, DataError
from weft.images.arrays import ResizeCrop, fit
from weft.models.preprocessing import Resample
from weft.objectives.images import image_logits
from weft.tasks.classify.evaluator import Read
from weft.tasks.data_facts import label_facts, parts_of
from weft.tasks.sources import DEMO, FilesConfig, are_tables

MIN_IMAGES = 4  # images
EVALUATION_BATCH = 256  # images that are evaluated together
MIN_CROP = 0.1  # less would blow an image up to a hundred times the pixels that are seen
Progress = Callable[[int, int], None]


class ImageDataConfig(FilesConfig):
    """Which images, and how they are brought into one form.

    `text` and `label` name the columns of a table of paths (None: found out); `kind` says what the labels are, which is
    recognised from them otherwise. `size`: rows and columns to which images are resized (None: their own if small,
    else 64); `channels`: 1 grey, 3 coloured (None: as they are). `crop`: the share of the shorter side that is left
    where the middle is cut out, None if the whole image is pressed into the square; `resample`: the filter by which
    it is resized, exactly as others do it (None: our way, bicubic, with big images reduced first). Found in
    the data: what separates several labels, mean and deviation of labels that are numbers, and those of the
    pixels in each channel, from 0 to 1. A model that was trained before brings the form that it knows.
    """

    found: ClassVar[tuple[str, ...]] = (
        *FilesConfig.found,
        "rows",
        "separator",
        "mean",
        "deviation",
        "pixel_mean",
        "pixel_deviation",
    )
    columns: ClassVar[tuple[str, ...]] = ("text", "label")

    text: str | None = None
    label: str | None = None
    kind: Literal["single", "multilabel", "regression"] | None = None
    size: Size | None = None
    channels: Literal[1, 3] | None = None
    crop: Share | None = 1.0
    resample: Resample | None = None
    rows: int = 0
    separator: str = ""
    mean: float = 0.0
    deviation: float = 1.0
    pixel_mean: tuple[float, ...] = ()
    pixel_deviation: tuple[float, ...] = ()

    def check(self) -> None:
        if self.crop is not None and self.crop < MIN_CROP:
            raise ConfigError(f"crop = {self.crop:g}", expected=f"at least {MIN_CROP}, the share of an image")

    @property
    def cut(self) -> ResizeCrop | None:
        """How images are made into squares; None: our way."""
        is_ours = self.crop == 1 and self.resample is None
        return None if is_ours else ResizeCrop(self.crop, self.resample or "bicubic")


@dataclass(frozen=True)
class ImageData:
    """The labelled images of a run, split; `why` says how the classes were recognised."""

    config: ImageDataConfig
    labels: Labels
    train: Images
    validation: Images
    test: Images | None
    why: str
    warnings: tuple[str, ...]

    def facts(self) -> dict[str, Any]:
        """In numbers, for a report."""
        parts = parts_of(self)
        return {
            "parts": {name: {"images": len(part)} for name, part in parts.items()},
            **label_facts(parts, self.labels),
            "images": {"size": self.train.size, "channels": self.train.channels},
        }

    def values(self, images: Images) -> NDArray[np.generic]:
        """The labels of images as numbers; one that was never learned is an error that names it."""
        return self.labels.encode(images.labels, list(range(1, len(images) + 1)), images.name)


def _sized(images: Images, config: ImageDataConfig) -> Images:
    """Images that are here already, in the requested form."""
    size, channels = config.size or images.size, config.channels or images.channels
    pixels = fit(images.pixels, channels=channels, size=size, cut=config.cut)
    return Images(pixels, images.labels, images.names, images.name)


def _source(config: ImageDataConfig, progress: Progress) -> ImageSource:
    if list(config.train) == [DEMO]:
        if config.validation or config.test:
            raise ConfigError("other images beside the digits of the demo", expected="demo alone")
        train, test = (_sized(demo_images(part), config) for part in ("train", "test"))
        return ImageSource(train, None, test, "the classes are scikit-learn's ten digits")
    return read_images(
        config.train,
        size=config.size,
        channels=config.channels,
        cut=config.cut,
        validation=config.validation,
        test=config.test,
        label=config.label,
        text=config.text,
        progress=progress,
    )


def read_data(config: ImageDataConfig, progress: Progress = lambda *_: None) -> ImageData:
    """Read the images, split off the validation part, and measure their pixels, unless their moments are given."""
    source = _source(config, progress)
    if len(source.train) < MIN_IMAGES:
        raise DataError(f"{len(source.train)} images in {source.train.name}", expected=f"at least {MIN_IMAGES}")
    kind = config.kind or (None if are_tables(config.train) else "single")  # names of folders are no measures
    labels = Labels.of(source.train.labels, kind, name=config.label or "label")
    data = ImageData(config, labels, source.train, source.train, source.test, source.why, source.notes)
    values = data.values(source.train)
    train, validation = source.train, source.validation
    if validation is None:
        if not config.validation_share > 0:
            raise ConfigError("data.validation_share = 0", expected="more than 0, or other images with --validation")
        learn, judge = stratified_split(values, config.validation_share, seed=0, groups=source.train.keys())
        train, validation, values = source.train.part(learn), source.train.part(judge), values[learn]
    for part in (validation, *([source.test] if source.test is not None else [])):
        data.values(part)
    mean, deviation = config.pixel_mean, config.pixel_deviation
    if not mean:
        mean, deviation = pixel_moments(train.pixels)
    found: dict[str, object] = {
        "kind": labels.kind,
        "separator": labels.separator,
        "rows": len(train),
        "size": source.size,
        "channels": source.channels,
        "fingerprint": source.fingerprint,
        "pixel_mean": mean,
        "pixel_deviation": deviation,
    }
    if labels.kind == "regression":
        found |= {"mean": float(np.mean(values)), "deviation": float(np.std(values)) or 1.0}  # type: ignore[arg-type]
    notes = (*source.notes, *labels.warnings)
    return ImageData(config.override(found), labels, train, validation, source.test, source.why, notes)


def pixel_moments(pixels: NDArray[np.uint8]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation of each channel, from 0 to 1; counted by value, so nothing large is made for it."""
    levels = np.arange(256) / 255
    means, deviations = [], []
    for channel in range(pixels.shape[1]):
        counts = np.zeros(256, dtype=np.int64)
        for start in range(0, len(pixels), 4096):
            counts += np.bincount(pixels[start : start + 4096, channel].ravel(), minlength=256)
        mean = float(counts @ levels / counts.sum())
        means.append(round(mean, 6))
        deviations.append(round(float(np.sqrt(counts @ (levels - mean) ** 2 / counts.sum())), 6) or 1.0)
    return tuple(means), tuple(deviations)


def as_input(pixels: NDArray[np.uint8], mean: tuple[float, ...], deviation: tuple[float, ...]) -> Tensor:
    """Bytes (N, C, Y, X) as a model gets them: by their deviation from the mean."""
    shape = (-1, 1, 1)
    middle, scale = torch.tensor(mean).view(shape), torch.tensor(deviation).view(shape)
    return torch.from_numpy(np.ascontiguousarray(pixels)).float().div_(255).sub_(middle).div_(scale)


def check_same(recorded: ImageDataConfig, found: ImageDataConfig) -> None:
    """Refuse to resume a run whose images have changed."""
    if recorded.fingerprint == found.fingerprint:
        return
    counts = f": {recorded.rows} to learn from then, {found.rows} now" if recorded.rows != found.rows else ""
    raise DataError(
        f"the images in {', '.join(recorded.train)} have changed since this run began{counts}",
        advice="put the old ones back, or train a new run",
    )


def images_read_as(data: ImageDataConfig) -> Read:
    """How images of this form are shown to a model."""

    def logits(model: nn.Module, images: Images, device: torch.device) -> np.ndarray:
        model.eval()
        found = []
        with torch.inference_mode():
            for start in range(0, len(images), EVALUATION_BATCH):
                some = images.pixels[start : start + EVALUATION_BATCH]
                seen = as_input(some, data.pixel_mean, data.pixel_deviation).to(device)
                found.append(image_logits(model, seen).cpu().double().numpy())
        return np.concatenate(found)

    return logits
