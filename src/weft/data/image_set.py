"""Labelled images of one size as an array, and whether some to judge by were already seen."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.data.column_check import KnownTexts
from weft.data.image_arrays import label_texts
from weft.errors import DataError
from weft.images.allocate import allocate
from weft.images.arrays import chunks, fit, of_array


@dataclass(frozen=True)
class Images:
    """Pixels (N, C, Y, X) of 8 bits, one label for each image, and what it is called: a path, or `train 17`."""

    pixels: NDArray[np.uint8]
    labels: list[str]
    names: list[str]
    name: str = "images"

    @classmethod
    def of(
        cls, pixels: Any, labels: Any, *, size: int | None = None, channels: int | None = None, name: str = "images"
    ) -> Images:
        """Images from arrays of any usual form; size and channels stay as they are unless they are named.

        Images that are no squares become squares of their longer side.
        """
        array, words = of_array(pixels, name), label_texts(labels, name)
        if len(words) != len(array):
            given = f"{name} has {len(array)} images and {len(words)} labels"
            raise DataError(given, expected="one label for each image")
        array = fit(array, channels=channels or array.shape[1], size=size or max(array.shape[2:]))
        return cls(array, words, [f"{name} {place}" for place in range(len(words))], name)

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"Images({self.name!r}, {len(self)} of {self.size} × {self.size}, {len(set(self.labels))} classes)"

    @property
    def size(self) -> int:
        """Rows and columns of each image."""
        return self.pixels.shape[-1]

    @property
    def channels(self) -> int:
        """1 for grey images, 3 for coloured ones."""
        return self.pixels.shape[1]

    def part(self, places: NDArray[np.integer] | Sequence[int]) -> Images:
        """The images at these places, in this order."""
        chosen = np.asarray(places, dtype=np.int64)
        pixels = allocate((len(chosen), *self.pixels.shape[1:]))
        for some in chunks(pixels.shape):
            pixels[some] = self.pixels[chosen[some]]
        labels, names = ([cells[place] for place in chosen] for cells in (self.labels, self.names))
        return Images(pixels, labels, names, self.name)

    def keys(self) -> list[bytes]:
        """A short hash of each image: equal ones must stay on one side of a split."""
        return [hashlib.blake2b(image.tobytes(), digest_size=8).digest() for image in self.pixels]

    @property
    def fingerprint(self) -> str:
        """The same for the same images and labels in the same order: 16 hexadecimal digits."""
        digest = hashlib.sha256(repr(self.pixels.shape).encode())
        for some in chunks(self.pixels.shape):
            digest.update(self.pixels[some].tobytes())
        digest.update("\x1e".join(self.labels).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()[:16]


def leaks(train: Images, other: Images, part: str) -> list[str]:
    """A warning if more than one in a hundred of the images to judge by are also learned from, pixel by pixel."""
    seen, known = (KnownTexts(part.keys(), part.labels) for part in (other, train))
    return list(seen.known_in(known).warning(f"the images for {part}", len(other), "those to learn from"))
