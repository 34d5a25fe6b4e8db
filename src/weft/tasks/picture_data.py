"""Labelled pictures as the data of a run: read, split, and recorded so that a resume can check them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weft.config import Share, Size
from weft.data import Labels, stratified_split
from weft.data.picture_demo import demo_pictures
from weft.data.pictures import Pictures, PictureSource, read_pictures
from weft.errors import ConfigError, DataError
from weft.images.arrays import Cut, fit
from weft.models.preprocessing import Resample
from weft.tasks.sources import DEMO, FilesConfig, are_tables

LEAST = 4  # pictures
LEAST_CROP = 0.1  # less would blow a picture up to a hundred times the pixels that are seen
Progress = Callable[[int, int], None]


class PictureDataConfig(FilesConfig):
    """Which pictures, and how they are brought into one form.

    `text` and `label` name the columns of a table of paths (None: found out); `kind` says what the labels are, which is
    told from them otherwise. `size`: rows and columns to which pictures are brought (None: their own if it is small,
    else 64); `channels`: 1 grey, 3 coloured (None: as they are). `crop`: the share of the shorter side that is left
    where the middle is cut out, None if the whole picture is pressed into the square; `resample`: the filter by which
    it is resized, exactly as others do it (None: our way, bicubic, with big pictures reduced first). The rest is found
    in the data: what stands between several labels, mean and deviation of labels that are numbers, and those of the
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
    kind: Literal["single", "several", "number"] | None = None
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
        if self.crop is not None and self.crop < LEAST_CROP:
            raise ConfigError(f"crop = {self.crop:g}", expected=f"at least {LEAST_CROP}, the share of a picture")

    @property
    def cut(self) -> Cut | None:
        """How pictures are made into squares; None: our way."""
        is_ours = self.crop == 1 and self.resample is None
        return None if is_ours else Cut(self.crop, self.resample or "bicubic")


@dataclass(frozen=True)
class PictureData:
    """The labelled pictures of a run, split; `why` says how the classes were told."""

    config: PictureDataConfig
    labels: Labels
    train: Pictures
    validation: Pictures
    test: Pictures | None
    why: str
    warnings: tuple[str, ...]

    def values(self, pictures: Pictures) -> NDArray[np.generic]:
        """The labels of pictures as numbers; one that was never learned is an error that names it."""
        return self.labels.encode(pictures.labels, list(range(1, len(pictures) + 1)), pictures.name)


def _sized(pictures: Pictures, config: PictureDataConfig) -> Pictures:
    """Pictures that are here already, in the form that is asked for."""
    size, channels = config.size or pictures.size, config.channels or pictures.channels
    pixels = fit(pictures.pixels, channels=channels, size=size, cut=config.cut)
    return Pictures(pixels, pictures.labels, pictures.names, pictures.name)


def _source(config: PictureDataConfig, progress: Progress) -> PictureSource:
    if list(config.train) == [DEMO]:
        if config.validation or config.test:
            raise ConfigError("other pictures beside the digits of the demo", expected="demo alone")
        train, test = (_sized(demo_pictures(part), config) for part in ("train", "test"))
        return PictureSource(train, None, test, "the classes are scikit-learn's ten digits")
    return read_pictures(
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


def read_data(config: PictureDataConfig, progress: Progress = lambda *_: None) -> PictureData:
    """Read the pictures, split off what is judged by, and measure their pixels, unless their moments are given."""
    source = _source(config, progress)
    if len(source.train) < LEAST:
        raise DataError(f"{len(source.train)} pictures in {source.train.name}", expected=f"at least {LEAST}")
    kind = config.kind or (None if are_tables(config.train) else "single")  # names of folders are no measures
    labels = Labels.of(source.train.labels, kind, name=config.label or "label")
    data = PictureData(config, labels, source.train, source.train, source.test, source.why, source.notes)
    values = data.values(source.train)
    train, validation = source.train, source.validation
    if validation is None:
        if not config.held_out > 0:
            raise ConfigError("data.held_out = 0", expected="more than 0, or other pictures with --validation")
        learn, judge = stratified_split(values, config.held_out, seed=0, groups=source.train.keys())
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
    if labels.kind == "number":
        found |= {"mean": float(np.mean(values)), "deviation": float(np.std(values)) or 1.0}  # type: ignore[arg-type]
    notes = (*source.notes, *labels.warnings)
    return PictureData(config.override(found), labels, train, validation, source.test, source.why, notes)


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


def check_same(recorded: PictureDataConfig, found: PictureDataConfig) -> None:
    """A run goes on with the pictures it began with, or not at all."""
    if recorded.fingerprint == found.fingerprint:
        return
    counts = f": {recorded.rows} to learn from then, {found.rows} now" if recorded.rows != found.rows else ""
    raise DataError(
        f"the pictures in {', '.join(recorded.train)} have changed since this run began{counts}",
        advice="put the old ones back, or train a new run",
    )
