"""Images that lie in arrays: the idx files of MNIST and its relatives, and NumPy archives."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.data.image_parts import PARTS, Found, FoundParts, Part, labelled_array
from weft.errors import DataError
from weft.images.arrays import of_array
from weft.images.idx import read_idx
from weft.images.npz import names_in_npz, read_npz

IDX = re.compile(r"[-_.]?idx\d?([-_.]ubyte)?(\.gz)?$", re.IGNORECASE)
HABITS = (("x_{}", "y_{}"), ("{}_images", "{}_labels"), ("{}_x", "{}_y"))
PLAIN = (("images", "labels"), ("x", "y"))


def label_texts(labels: Any, where: str) -> list[str]:
    """Labels of any usual form as words: (N,) or (N, 1) numbers or words, or rows with a single 1."""
    values = np.asarray(labels)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim == 2 and values.dtype.kind in "buif":
        if not (np.isin(values, (0, 1)).all() and (values.sum(axis=1) == 1).all()):
            given = f"the labels of {where} have the shape {values.shape}, and several or none in a row"
            raise DataError(given, expected="one class for each image")
        values = values.argmax(axis=1)
    if values.ndim != 1 or values.dtype.kind not in "buifUSO":
        given = f"the labels of {where} are {values.dtype} of the shape {values.shape}"
        raise DataError(given, expected="one for each image: (N,)")
    if values.dtype.kind == "b":
        values = values.astype(np.int64)
    if values.dtype.kind == "f":
        if not np.isfinite(values).all():
            raise DataError(f"the labels of {where} are not all finite", expected="one for each image")
        values = values.astype(np.int64) if (values == np.rint(values)).all() else values
    words = [item.decode("utf-8", "replace") if isinstance(item, bytes) else str(item) for item in values.tolist()]
    empty = next((place for place, word in enumerate(words) if not word.strip() or word == "None"), None)
    if empty is not None:
        raise DataError(f"image {empty} of {where} has no label", expected="one for each image")
    return [word.strip() for word in words]


# -- idx --------------------------------------------------------------------------------------


def has_idx_name(name: str) -> bool:
    """Whether a file is called like an idx file."""
    return IDX.search(name) is not None


def _words(name: str) -> list[str]:
    """`train-images-idx3-ubyte.gz` as train, images: what the name says beside its format."""
    return [word for word in re.split(r"[-_.]+", IDX.sub("", name).lower()) if word]


def _with_labels(name: str) -> list[str]:
    return [{"images": "labels", "image": "label"}.get(word, word) for word in _words(name)]


def _part(name: str) -> Part:
    return next((PARTS[word] for word in _words(name) if word in PARTS), "train")


def _idx_files(folder: Path) -> list[Path]:
    return sorted(
        item for item in folder.iterdir() if has_idx_name(item.name) and item.name[0] != "." and item.is_file()
    )


def _is_images(path: Path) -> bool:
    return bool({"images", "image"} & set(_words(path.name)))


def _best(paths: Sequence[Path]) -> list[Path]:
    """Each file once, if it is there both packed and unpacked."""
    return list({tuple(_words(path.name)): path for path in sorted(paths, reverse=True)}.values())


def _read_pair(images: Path, prefix: str) -> Found:
    """Images and the labels that lie beside them."""
    wanted = _with_labels(images.name)
    beside = [path for path in _best(_idx_files(images.parent)) if _words(path.name) == wanted and path != images]
    if not beside or wanted == _words(images.name):
        name = images.name.replace("images", "labels").replace("idx3", "idx1")
        advice = f"put {name} beside it" if name != images.name else "call them …-images-… and …-labels-…"
        raise DataError(f"there are no labels for {images}", expected="a file with labels beside it", advice=advice)
    pixels, labels = read_idx(images), read_idx(beside[0])
    if pixels.ndim not in (3, 4):
        raise DataError(f"{images} has the shape {pixels.shape}", expected="images: three or four axes")
    if labels.ndim != 1:
        raise DataError(f"{beside[0]} has the shape {labels.shape}", expected="labels: one axis")
    return labelled_array(of_array(pixels, str(images)), label_texts(labels, str(beside[0])), str(images), prefix)


def find_idx(path: Path) -> FoundParts:
    """One file of images, or of labels, with the other beside it."""
    images = path
    if not _is_images(path):
        others = [other for other in _best(_idx_files(path.parent)) if _is_images(other)]
        images = next((other for other in others if _with_labels(other.name) == _words(path.name)), path)
    return FoundParts({"train": _read_pair(images, _part(images.name))}, "classes: from the labels beside the images")


def holds_idx(folder: Path) -> bool:
    """Whether there are idx files of images directly in a folder."""
    return any(_is_images(path) for path in _idx_files(folder))


def find_idx_folder(folder: Path) -> FoundParts:
    """All idx files of a folder: `train-*` to learn from, `t10k-*` or `test-*` to test by; other files are ignored."""
    by_part: dict[Part, list[Path]] = {}
    for path in _best([path for path in _idx_files(folder) if _is_images(path)]):
        by_part.setdefault(_part(path.name), []).append(path)
    for part, paths in by_part.items():
        if len(paths) > 1:
            names = ", ".join(sorted(path.name for path in paths)[:3])
            given = f"{folder} has {len(paths)} files of images for {part}: {names}"
            raise DataError(given, expected="one", advice="name the one that is meant")
    parts = {part: _read_pair(paths[0], part) for part, paths in by_part.items()}
    return FoundParts(parts, "classes: from the labels beside the images")


# -- npz --------------------------------------------------------------------------------------


def find_npz(path: Path) -> FoundParts:
    """A NumPy archive whose arrays have the names that people usually give them."""
    names = {name.lower(): name for name in names_in_npz(path)}
    pairs: dict[Part, tuple[str, str]] = {}
    for word, part in PARTS.items():
        for images, labels in HABITS:
            if images.format(word) in names and part not in pairs:
                pairs[part] = (images.format(word), labels.format(word))
    for images, labels in PLAIN:
        if images in names and "train" not in pairs:
            pairs["train"] = (images, labels)
    if not pairs:
        shown = ", ".join(list(names.values())[:8]) or "nothing"
        expected = "x_train and y_train, images and labels, x and y, or train_images and train_labels"
        raise DataError(f"{path} holds {shown}", expected=expected)
    without = next((pair for pair in pairs.values() if pair[1] not in names), None)
    if without is not None:
        raise DataError(f"{path} has no labels for {names[without[0]]!r}", expected=f"an array {without[1]!r}")
    arrays = read_npz(path, [names[name] for pair in pairs.values() for name in pair])
    parts = {part: _of_arrays(path, arrays, names[one], names[two], part) for part, (one, two) in pairs.items()}
    told = " and ".join(repr(names[labels]) for _, labels in pairs.values())
    return FoundParts(parts, f"classes: from {told} in {path.name}")


def _of_arrays(path: Path, arrays: dict[str, NDArray[Any]], images: str, labels: str, part: Part) -> Found:
    where = f"{images!r} in {path}"
    pixels = of_array(arrays[images], where)
    return labelled_array(pixels, label_texts(arrays[labels], where), where, part)
