"""Which kind of image data a path is: a folder by class, idx files, a NumPy archive, a table of paths."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from weft.data.image_arrays import find_idx, find_idx_folder, find_npz, has_idx_name, holds_idx
from weft.data.image_folders import LAYOUT, find_folder
from weft.data.image_parts import FoundParts
from weft.data.image_tables import find_table, names_images
from weft.data.table_files import is_table
from weft.errors import DataError
from weft.images.formats import has_image_name
from weft.text.files import SUFFIXES as TEXTS
from weft.text.files import find_documents

ENOUGH = 10_000  # names of a folder by which it is judged
KINDS = f"a folder with {LAYOUT}; idx files; an .npz file; or a table of paths and labels"


def is_images(paths: Sequence[str | Path], text: str | None = None) -> bool:
    """Whether these are images, and not texts or tables of texts; told from names alone.

    A folder is one of images if it holds idx files, or more images in its sub-folders than texts. `text` is the
    column that the user named, if any.
    """
    return bool(paths) and all(_is_images(Path(path), text) for path in paths)


def _is_images(path: Path, text: str | None) -> bool:
    if os.path.isdir(path):
        return _folder_of_images(path)
    name = path.name
    if name.lower().endswith(".npz") or has_idx_name(name) or has_image_name(name):
        return True
    return os.path.isfile(path) and is_table(path) and names_images(path, text)


def _folder_of_images(folder: Path) -> bool:
    flat = deep = texts = seen = 0
    try:
        if holds_idx(folder):
            return True
    except OSError:
        return False
    for base, folders, names in os.walk(folder, followlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        inside = Path(base) != folder
        for name in names:
            if name.startswith("."):
                continue
            seen += 1
            texts += name.lower().endswith(TEXTS)
            deep += inside and has_image_name(name)
            flat += not inside and has_image_name(name)
        if seen > ENOUGH:
            break
    return deep > texts if texts else deep + flat > 0


def find_images(path: str | Path, label: str | None = None, text: str | None = None) -> FoundParts:
    """The labelled images at a path, by part; files are found and not yet decoded."""
    path = Path(path)
    if os.path.isdir(path):
        return _checked_folder(path)
    if not os.path.exists(path):
        find_documents([path])  # says that it is missing, and what was probably meant
    if path.name.lower().endswith(".npz"):
        return find_npz(path)
    if has_idx_name(path.name):
        return find_idx(path)
    if has_image_name(path.name):
        raise DataError(f"{path} is one image, and has no class", expected=KINDS)
    if is_table(path):
        return find_table(path, label, text)
    raise DataError(f"{path} is no set of images", expected=KINDS)


def _checked_folder(path: Path) -> FoundParts:
    try:
        idx = holds_idx(path)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    return find_idx_folder(path) if idx else find_folder(path)
