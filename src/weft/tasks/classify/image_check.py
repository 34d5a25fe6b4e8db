"""What a set of labelled images is like before anything learns from it; read as training reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from weft.data.augmentation import mirrors_well
from weft.data.images import Images
from weft.tasks.classify.image_data import ImageData, ImageDataConfig, read_data

FEW = 20  # images of a class
UNEVEN = 10  # a class so many times as frequent as another


@dataclass
class ImagePart:
    """What was found in one part."""

    name: str
    images: int
    classes: dict[str, int]  # how often each occurs, in the order of the labels
    duplicates: int  # images that equal an earlier one, pixel by pixel


@dataclass
class ImageCheck:
    """The findings; parts are `train`, `validation` and `test`, as far as they are there."""

    reason: str
    kind: str
    size: int
    channels: int
    mirrors: bool
    pixel_mean: tuple[float, ...]
    pixel_deviation: tuple[float, ...]
    parts: dict[str, ImagePart]
    notes: list[str]
    warnings: list[str]
    problems: list[str]

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        return dict.fromkeys(("validation", "test")) | asdict(self) | asdict(self).pop("parts")


def check_images(
    train: Sequence[str],
    validation: Sequence[str] = (),
    test: Sequence[str] = (),
    *,
    columns: Mapping[str, str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ImageCheck:
    """Decode all images and count; what training would refuse is a `DataError`.

    `columns` are those of a table of paths that the user named: `text` and `label`.
    """
    config = ImageDataConfig(train=tuple(train), validation=tuple(validation), test=tuple(test))
    data = read_data(config.override(columns or {}), progress or (lambda *_: None))
    given = {"train": data.train, "validation": data.validation, "test": data.test}
    parts = {name: _part(images, data) for name, images in given.items() if images is not None}
    single = data.labels.kind == "single"
    values: Any = data.values(data.train)
    assert data.config.size is not None and data.config.channels is not None
    return ImageCheck(
        reason=data.why,
        kind=data.labels.kind,
        size=data.config.size,
        channels=data.config.channels,
        mirrors=single and mirrors_well(data.train.pixels, values),
        pixel_mean=data.config.pixel_mean,
        pixel_deviation=data.config.pixel_deviation,
        parts=parts,
        notes=[],
        warnings=[*data.warnings, *_warnings(parts["train"])],
        problems=[],
    )


def _part(images: Images, data: ImageData) -> ImagePart:
    found: Counter[str] = Counter(name for label in images.labels for name in data.labels.names(label))
    classes = {name: found[name] for name in data.labels.classes}
    return ImagePart(images.name, len(images), classes, len(images) - len(set(images.keys())))


def _warnings(train: ImagePart) -> list[str]:
    told = []
    few = [f"{name!r} ({count})" for name, count in train.classes.items() if count < FEW]
    if few:
        more = f" and {len(few) - 3} more" if len(few) > 3 else ""
        told.append(f"classes with fewer than {FEW} images to learn from: {', '.join(few[:3])}{more}")
    counts = [count for count in train.classes.values() if count]
    if counts and max(counts) >= UNEVEN * min(counts):
        told.append(f"the most frequent class has {max(counts) / min(counts):.0f} times as many images as the rarest")
    if train.duplicates:
        told.append(f"{train.duplicates:,} of the images to learn from equal an earlier one")
    return told
