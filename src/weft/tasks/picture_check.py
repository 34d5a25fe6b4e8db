"""What a set of labelled pictures is like before anything learns from it; read as training reads it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from weft.data.augmentation import mirrors_well
from weft.data.pictures import Pictures
from weft.tasks.picture_data import PictureData, PictureDataConfig, read_data

FEW = 20  # pictures of a class
UNEVEN = 10  # a class so many times as frequent as another


@dataclass
class PicturePart:
    """What was found in one part."""

    name: str
    pictures: int
    classes: dict[str, int]  # how often each occurs, in the order of the labels
    duplicates: int  # pictures that equal an earlier one, pixel by pixel


@dataclass
class PictureCheck:
    """The findings; parts are `train`, `validation` and `test`, as far as they are there."""

    reason: str
    kind: str
    size: int
    channels: int
    mirrors: bool
    pixel_mean: tuple[float, ...]
    pixel_deviation: tuple[float, ...]
    parts: dict[str, PicturePart]
    notes: list[str]
    warnings: list[str]
    problems: list[str]

    def to_dict(self) -> dict[str, Any]:
        """For programs."""
        return dict.fromkeys(("validation", "test")) | asdict(self) | asdict(self).pop("parts")


def check_pictures(
    train: Sequence[str],
    validation: Sequence[str] = (),
    test: Sequence[str] = (),
    *,
    columns: Mapping[str, str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> PictureCheck:
    """Decode all pictures and count; what training would refuse is a `DataError`.

    `columns` are those of a table of paths that the user named: `text` and `label`.
    """
    config = PictureDataConfig(train=tuple(train), validation=tuple(validation), test=tuple(test))
    data = read_data(config.override(columns or {}), progress or (lambda *_: None))
    given = {"train": data.train, "validation": data.validation, "test": data.test}
    parts = {name: _part(pictures, data) for name, pictures in given.items() if pictures is not None}
    single = data.labels.kind == "single"
    values: Any = data.values(data.train)
    assert data.config.size is not None and data.config.channels is not None
    return PictureCheck(
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


def _part(pictures: Pictures, data: PictureData) -> PicturePart:
    found: Counter[str] = Counter(name for label in pictures.labels for name in data.labels.names(label))
    classes = {name: found[name] for name in data.labels.classes}
    return PicturePart(pictures.name, len(pictures), classes, len(pictures) - len(set(pictures.keys())))


def _warnings(train: PicturePart) -> list[str]:
    told = []
    few = [f"{name!r} ({count})" for name, count in train.classes.items() if count < FEW]
    if few:
        more = f" and {len(few) - 3} more" if len(few) > 3 else ""
        told.append(f"classes with fewer than {FEW} pictures to learn from: {', '.join(few[:3])}{more}")
    counts = [count for count in train.classes.values() if count]
    if counts and max(counts) >= UNEVEN * min(counts):
        told.append(f"the most frequent class has {max(counts) / min(counts):.0f} times as many pictures as the rarest")
    if train.duplicates:
        told.append(f"{train.duplicates:,} of the pictures to learn from equal an earlier one")
    return told
