"""Images for `weft classify`: files and folders from arguments, from lines or from a table, in their order."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weft.cli.streams import groups
from weft.errors import DataError

if TYPE_CHECKING:
    import numpy as np

    from weft.tasks.classify.answers import Answer
    from weft.tasks.classify.image_classifier import PixelClassifier

    Rows = Iterator[tuple[list[str], Answer]]

AT_ONCE = 64  # images that are looked at together


class Looking:
    """Says what images show; one that cannot be read is told on stderr and left out, and counted."""

    def __init__(self, classifier: PixelClassifier) -> None:
        self.classifier, self.failed = classifier, 0

    def of_paths(self, words: Iterable[str]) -> Rows:
        """Files as they are, folders as all images below them."""
        return self._rows(([str(path)], path) for word in words for path in _images_of(Path(word)))

    def of_table(self, path: str, column: str | None) -> tuple[Rows, list[str]]:
        """All cells of each row as they are, and what is said of its image; paths begin at the table."""
        from weft.data import read_table
        from weft.data.image_tables import path_column

        table = read_table(path)
        folder = Path(path).parent
        name = column or self.classifier.data.text or path_column(table, folder)
        if name is None:
            expected = f"one of {', '.join(table.columns)}, by --text"
            raise DataError(f"{path} has no column with images that are there", expected=expected)
        place = table.place(name)
        return self._rows((list(row.cells), folder / row.cells[place]) for row in table.rows()), list(table.columns)

    def _rows(self, given: Iterator[tuple[list[str], Path]]) -> Rows:
        for group in groups(given, AT_ONCE):
            shown = [(cells, pixels) for cells, path in group if (pixels := self._decoded(path)) is not None]
            answers = self.classifier.answers([pixels for _, pixels in shown])
            yield from zip((cells for cells, _ in shown), answers, strict=True)

    def _decoded(self, path: Path) -> np.ndarray | None:
        try:
            return self.classifier.decoded(path)
        except DataError as error:
            self.failed += 1
            typer.echo(f"weft: {error}", err=True)
            return None

    def finish(self) -> None:
        """An error if anything was left out."""
        if self.failed:
            raise DataError(f"{self.failed} of the images could not be read", advice="they are named above")


def _images_of(path: Path) -> Iterator[Path]:
    if not os.path.isdir(path):  # which is also the answer to a text that is too long for a path
        yield path
        return
    from weft.images.formats import has_image_name

    found = (Path(base) / name for base, _, names in os.walk(path) for name in names if not name.startswith("."))
    images = [file for file in found if has_image_name(file.name)]
    if not images:
        raise DataError(f"{path} holds no images", expected="files such as .png or .jpg")
    yield from sorted(images)
