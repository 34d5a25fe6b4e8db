"""A folder of images with one sub-folder for each class, perhaps divided into train, validation and test."""

from __future__ import annotations

import os
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from weft.data.image_parts import PARTS, Found, FoundParts, Part
from weft.data.table_files import SUFFIXES as TABLES
from weft.errors import DataError
from weft.images.formats import UNREAD, has_image_name

LAYOUT = "one sub-folder for each class, with its images in it"


@dataclass
class FolderScan:
    """What is remembered while folders are gone through."""

    unread: Counter[str] = field(default_factory=Counter)  # endings of images that cannot be read
    loops: list[str] = field(default_factory=list)

    def notes(self, folder: Path) -> list[str]:
        notes = [f"{link} leads to a folder above it: it is left out" for link in self.loops[:3]]
        if self.unread:
            kinds = ", ".join(sorted(self.unread))
            notes.append(f"{sum(self.unread.values())} files in {folder} are left out: {kinds} cannot be read")
        return notes


def order_of(name: str) -> str:
    """What names are sorted by, the same on every system: some write é as two characters."""
    return unicodedata.normalize("NFC", name)


def entries(folder: Path) -> tuple[list[str], list[str]]:
    """The names of folders and files in a folder, sorted; hidden ones are skipped."""
    try:
        with os.scandir(folder) as found:
            names = sorted((entry.name for entry in found if not entry.name.startswith(".")), key=order_of)
    except OSError as error:
        raise DataError(f"{folder} cannot be read: {error.strerror or error}") from None
    folders = [name for name in names if os.path.isdir(folder / name)]
    inside = set(folders)
    return folders, [name for name in names if name not in inside]


def images_below(folder: Path, walk: FolderScan, above: frozenset[str] = frozenset()) -> Iterator[Path]:
    """All images in a folder and deeper, in sorted order; links are followed, but never round in a circle."""
    real = os.path.realpath(folder)
    if real in above:
        walk.loops.append(str(folder))
        return
    folders, files = entries(folder)
    for name in files:
        if has_image_name(name):
            yield folder / name
        elif os.path.splitext(name)[1].lower() in UNREAD:
            walk.unread[os.path.splitext(name)[1].lower()] += 1
    for name in folders:
        yield from images_below(folder / name, walk, above | {real})


def find_folder(folder: Path) -> FoundParts:
    """The images of a folder by class, and by part if its sub-folders say so."""
    walk = FolderScan()
    folders, files = entries(folder)
    loose = [name for name in files if has_image_name(name)]
    parts = _split_folders(folder, folders)
    notes: list[str] = []
    if parts:
        found = {part: _classes(folder / name, walk, notes) for part, name in parts.items()}
        why = f"classes: from the folders in {' and '.join(parts.values())}"
    else:
        found = {"train": _classes(folder, walk, notes)}
        why = "classes: from folders"
    full = {part: images for part, images in found.items() if len(images)}
    if "train" not in full:
        raise _nothing(folder, loose, files, folders)
    if loose:
        notes.append(f"{len(loose)} images in {folder} lie in no folder of a class: they are left out")
    return FoundParts(full, why, (*notes, *walk.notes(folder)))


def _split_folders(folder: Path, folders: list[str]) -> dict[Part, str]:
    """Which sub-folder is which part; nothing if they are classes.

    They are parts if all of them have the names of parts, one is to learn from, and that one holds folders itself.
    """
    parts: dict[Part, str] = {}
    for name in folders:
        part = PARTS.get(name.lower())
        if part is None:
            if next(images_below(folder / name, FolderScan()), None) is not None:
                return {}
        elif part in parts:
            return {}
        else:
            parts[part] = name
    if "train" not in parts or not entries(folder / parts["train"])[0]:
        return {}
    order: tuple[Part, ...] = ("train", "validation", "test")
    return {part: parts[part] for part in order if part in parts}


def _classes(folder: Path, walk: FolderScan, notes: list[str]) -> Found:
    """The images below a folder; the class is the first folder on the way to them."""
    labels: list[str] = []
    files: list[Path] = []
    above = frozenset({os.path.realpath(folder)})
    folders, loose = entries(folder)
    empty = []
    for name in folders:
        found = list(images_below(folder / name, walk, above))
        files += found
        labels += [order_of(name)] * len(found)
        if not found:
            empty.append(name)
    if empty and files:
        notes.append(f"there are no images in {', '.join(str(folder / name) for name in empty[:3])}")
    if not files and any(map(has_image_name, loose)) and folder.name.lower() in PARTS:
        notes.append(f"the images in {folder} lie in no folder of a class: they are left out")
    return Found(str(folder), labels, [str(file) for file in files], files=files)


def table_advice(folder: Path, files: list[str] | None = None) -> str:
    """A file in the folder that may say what the folder does not."""
    files = entries(folder)[1] if files is None else files
    table = next((name for name in files if os.path.splitext(name)[1].lower() in TABLES), "")
    archive = next((name for name in files if name.lower().endswith(".npz")), "")
    found = table or archive
    return f"if {folder / found} names the classes, give that file" if found else ""


def _nothing(folder: Path, loose: list[str], files: list[str], folders: list[str]) -> DataError:
    """What to say about a folder without images that have a class."""
    advice = table_advice(folder, files) or "or a table with the paths of images and their labels"
    if loose:
        return DataError(f"the {len(loose)} images in {folder} have no class", expected=LAYOUT, advice=advice)
    flat = next((name for name in folders if PARTS.get(name.lower()) == "train"), "")
    if flat:
        return DataError(f"there are no folders of classes in {folder / flat}", expected=LAYOUT, advice=advice)
    if not files and not folders:
        return DataError(f"{folder} is empty", expected=LAYOUT)
    return DataError(f"there are no images in {folder}", expected=LAYOUT, advice=table_advice(folder, files))
