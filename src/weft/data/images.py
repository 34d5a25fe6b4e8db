"""Images as people have them, read: found, decoded to one size, and those to judge by kept apart."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

import numpy as np

from weft.data.image_demo import demo_images
from weft.data.image_files import KINDS, find_images, is_images
from weft.data.image_folders import table_advice
from weft.data.image_parts import Found, FoundParts, Part
from weft.data.image_set import Images, leaks
from weft.data.tables import NAMED, TOLERATED
from weft.errors import ConfigError, DataError
from weft.images.allocate import allocate
from weft.images.arrays import ResizeCrop, fit, is_grey
from weft.images.decode import Header, look, pillow
from weft.images.many import decode_files

__all__ = ["ImageSource", "Images", "demo_images", "is_images", "leaks", "read_images"]

log = logging.getLogger(__name__)

SMALL = 64  # the size of images that have no size in common, or a larger one
ORDER: tuple[Part, ...] = ("train", "validation", "test")
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class ImageSource:
    """The images of a run by part, all of one size; `why` says how the classes were told."""

    train: Images
    validation: Images | None
    test: Images | None
    why: str
    notes: tuple[str, ...] = field(default=())

    @property
    def size(self) -> int:
        """Rows and columns of each image."""
        return self.train.size

    @property
    def channels(self) -> int:
        """1 if every image to learn from is grey, else 3, unless it was named."""
        return self.train.channels

    @property
    def fingerprint(self) -> str:
        """The fingerprints of the parts that there are, with `;` between them."""
        return ";".join(part.fingerprint for part in (self.train, self.validation, self.test) if part is not None)


def read_images(
    paths: Sequence[str | Path],
    *,
    size: int | None = None,
    channels: int | None = None,
    cut: ResizeCrop | None = None,
    validation: Sequence[str | Path] = (),
    test: Sequence[str | Path] = (),
    label: str | None = None,
    text: str | None = None,
    progress: Progress = lambda *_: None,
) -> ImageSource:
    """Find labelled images and decode them; those to judge by are given, found beside the others, or None.

    `size`: rows and columns; None is that of the images to learn from if all have the same and it is at most 64, else
    64. `channels`: None is 1 if all of these are grey, else 3. `cut`: another way to make squares of them. `label`
    and `text` are the columns of a table with the classes and with the paths. Up to one file in a hundred that
    cannot be read is left out and named; more are an error. `progress` is told how many files are decoded, of how
    many.
    """
    if size is not None and size < 1:
        raise ConfigError(f"size = {size}", expected="1 or more")
    if channels not in (None, 1, 3):
        raise ConfigError(f"channels = {channels}", expected="1 for grey or 3 for colours")
    given: dict[Part, Sequence[str | Path]] = {"train": paths, "validation": validation, "test": test}
    found = {part: [find_images(path, label, text) for path in some] for part, some in given.items()}
    chosen, notes = _chosen(found)
    reading = _Reading(chosen, progress, cut)
    _refuse_one_class(chosen["train"], paths)
    if size is None or channels is None:
        told, grey = _form(chosen["train"])
        size = size or told
        channels = 1 if grey and channels is None else channels
    train = reading.read("train", size, channels or 3)
    if channels is None and is_grey(train.pixels):
        train = Images(np.ascontiguousarray(train.pixels[:, :1]), train.labels, train.names, train.name)
    others = {part: reading.read(part, size, train.channels) for part in ORDER[1:] if chosen[part]}
    notes += reading.notes
    for part, other in others.items():
        notes += leaks(train, other, part)
    for note in notes:
        log.warning("%s", note)
    why = "; ".join(dict.fromkeys(one.why for one in found["train"]))
    return ImageSource(train, others.get("validation"), others.get("test"), why, tuple(notes))


def _chosen(found: dict[Part, list[FoundParts]]) -> tuple[dict[Part, list[Found]], list[str]]:
    """What each part is made of: what was given for it, else what was found beside the images to learn from."""
    chosen: dict[Part, list[Found]] = {part: [] for part in ORDER}
    notes = [note for some in found.values() for one in some for note in one.notes]
    for one in found["train"]:
        if "train" not in one.parts:
            where = next(iter(one.parts.values())).where
            raise DataError(f"{where} is a part to judge by", expected="images to learn from beside it")
        for part, images in one.parts.items():
            if part == "train" or not found[part]:
                chosen[part].append(images)
            else:
                notes.append(f"{images.where} is not used: other images were given for {part}")
    for part in ORDER[1:]:
        for one in found[part]:
            chosen[part].append(one.parts.get(part) or one.parts.get("train") or next(iter(one.parts.values())))
    return chosen, notes


def _refuse_one_class(found: Sequence[Found], paths: Sequence[str | Path]) -> None:
    if not found:
        raise DataError("no images given", expected=KINDS)
    classes = {label for part in found for label in part.labels}
    if len(classes) < 2:
        given = f"{found[0].where} has images of one class only: {next(iter(classes))!r}"
        folder = Path(paths[0])
        raise DataError(given, expected="at least two", advice=table_advice(folder) if folder.is_dir() else "")


# -- the form they are brought into -----------------------------------------------------------


def _headers(found: Sequence[Found]) -> Iterator[Header]:
    """What is known of each image before it is decoded, in order and when asked for; errors are told later."""
    for part in found:
        if part.array is not None:
            _, channels, height, width = part.array.shape
            yield Header(width, height, channels == 1)
        for file in part.files or ():
            with suppress(DataError):
                yield look(file)


def _form(found: Sequence[Found]) -> tuple[int, bool]:
    """The size that all images have in common if it is small, else 64; and whether all are surely grey.

    Photographs are known by the first of them: the headers are gone through only until nothing is left to find out.
    """
    common, grey = set[tuple[int, int]](), True
    for header in _headers(found):
        common.add((max(header[:2]), min(header[:2])))  # an image that lies on its side is no other size
        grey = grey and header.grey
        if not grey and (len(common) > 1 or header.width > SMALL or header.height > SMALL):
            break
    longest = max(common, default=(SMALL, SMALL))[0]
    return (longest if len(common) == 1 and longest <= SMALL else SMALL), grey


class _Reading:
    """Decoding part after part, with one count for all of them."""

    def __init__(self, chosen: dict[Part, list[Found]], progress: Progress, cut: ResizeCrop | None = None) -> None:
        self.chosen, self.progress, self.cut = chosen, progress, cut
        self.total = sum(len(found.files or ()) for some in chosen.values() for found in some)
        self.done = 0
        self.notes: list[str] = []
        if self.total:
            pillow()

    def read(self, part: Part, size: int, channels: int) -> Images:
        """All images of a part, in order."""
        read = [self._one(found, size, channels) for found in self.chosen[part]]
        if len(read) == 1:
            return read[0]
        pixels = allocate((sum(map(len, read)), channels, size, size))
        start = 0
        for images in read:
            pixels[start : start + len(images)] = images.pixels
            start += len(images)
        labels = [label for images in read for label in images.labels]
        names = [name for images in read for name in images.names]
        return Images(pixels, labels, names, ", ".join(images.name for images in read))

    def _one(self, found: Found, size: int, channels: int) -> Images:
        if found.array is not None:
            pixels = fit(found.array, channels=channels, size=size, cut=self.cut)
            return Images(pixels, found.labels, found.names, found.where)
        files, before = found.files or [], self.done
        pixels, problems = decode_files(
            files,
            channels=cast(Literal[1, 3], channels),
            size=size,
            cut=self.cut,
            progress=lambda done, _: self.progress(before + done, self.total),
        )
        self.done += len(files)
        read = Images(pixels, found.labels, found.names, found.where)
        if not problems:
            return read
        self._judge(found, problems)
        return read.part([place for place in range(len(files)) if place not in problems])

    def _judge(self, found: Found, problems: dict[int, str]) -> None:
        """Few files that cannot be read are left out and named; more are refused."""
        named = [_told(found, place, why) for place, why in list(problems.items())[:NAMED]]
        if len(problems) > TOLERATED * len(found):
            more = f", and {len(problems) - 1} more of {len(found)}" if len(problems) > 1 else f", one of {len(found)}"
            expected = f"at most {TOLERATED:.0%} of the images that cannot be read"
            raise DataError(named[0] + more, expected=expected, advice="repair or remove them")
        shown = "; ".join(named) + ("; …" if len(problems) > len(named) else "")
        self.notes.append(f"{len(problems)} of {len(found)} images in {found.where} are skipped: {shown}")


def _told(found: Found, place: int, why: str) -> str:
    return why if found.lines is None else f"line {found.lines[place]} of {found.where}: {why}"
