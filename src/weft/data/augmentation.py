"""Which changes an image gets when it is learned from: a pure function of the seed and the sample's number.

So a resumed run shows what the uninterrupted one would have shown, whatever process asks, in whatever order.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from weft.config import Amount, Config, Share
from weft.data.keyed_draws import KeyedDraws, unit
from weft.errors import ConfigError
from weft.images.changes import Movement, blended, erased, moved, pasted, recoloured

DRAWS = 16  # numbers for each sample


class AugmentConfig(Config):
    """How far images are changed at most; 0 is not at all.

    strength    share of all of these but `mirror` that is used; "auto": the more, the more often an image is seen
                (`strength_for`)
    shift       moved, as a share of the image           turn      turned, in degrees
    zoom        larger or smaller by this share            shear     slanted
    mirror      share of the images that are mirrored (left and right); "auto": half of them, if mirrored images are
                still like their class (`mirrors_well`)
    colour      contrast and brightness                    erase     share of the images with a piece missing
    mixup       share of the images that are blended with another one, label and all
    cutmix      share of the images into which a piece of another is pasted
    """

    strength: Share | Literal["auto"] = "auto"
    shift: Share = 0.1
    turn: Amount = 10.0
    zoom: Share = 0.1
    shear: Share = 0.1
    mirror: Share | Literal["auto"] = "auto"
    colour: Share = 0.1
    erase: Share = 0.0
    mixup: Share = 0.5
    cutmix: Share = 0.0

    def check(self) -> None:
        if self.mixup + self.cutmix > 1:
            raise ConfigError(f"mixup {self.mixup} and cutmix {self.cutmix}", expected="at most 1 together")
        if self.zoom >= 1:
            raise ConfigError(f"zoom = {self.zoom}", expected="less than 1")

    @property
    def mixes(self) -> bool:
        """Whether a sample may need another one."""
        return self.mixup + self.cutmix > 0


class Augmentation:
    """Changes batches of samples by their numbers."""

    def __init__(self, config: AugmentConfig, seed: int) -> None:
        self.config, self.chance = config, KeyedDraws(seed)

    def __repr__(self) -> str:
        return f"Augmentation(seed={self.chance.seed})"

    def _draws(self, numbers: NDArray[np.integer], purpose: str) -> Tensor:
        """(DRAWS, N) numbers in [0, 1)."""
        drawn = self.chance.of(numbers, purpose)[:, None]
        return torch.from_numpy(unit(KeyedDraws.at(drawn, np.arange(DRAWS)[None, :])).astype(np.float32)).t()

    def changed(self, pixels: Tensor, numbers: NDArray[np.integer]) -> Tensor:
        """Each image by itself."""
        config, u = self.config, self._draws(numbers, "picture")  # the key of these draws: another word draws otherwise
        assert not isinstance(config.mirror, str) and not isinstance(config.strength, str), "a plan has decided this"
        both = 2 * u - 1  # from −1 to 1
        on = config.strength
        if config.shift or config.turn or config.zoom or config.shear or config.mirror:
            mirror = torch.where(u[1] < config.mirror, -1.0, 1.0)
            movement = Movement(
                angle=on * both[2] * math.radians(config.turn),
                shear=on * both[3] * config.shear,
                zoom=1 + on * both[4] * config.zoom,
                down=on * both[5] * config.shift,
                right=on * both[6] * config.shift,
                mirror=mirror,
            )
            pixels = moved(pixels, movement)
        if config.colour:
            pixels = recoloured(pixels, 1 + on * both[7] * config.colour, on * both[8] * config.colour)
        if config.erase:
            size = torch.where(u[9] < on * config.erase, 0.1 + 0.15 * u[10], torch.zeros(()))
            pixels = erased(pixels, torch.stack([u[11], u[12], size, size], dim=1))
        return pixels

    def mixed(
        self, pixels: Tensor, labels: Tensor, others: Tensor, other_labels: Tensor, numbers: NDArray[np.integer]
    ) -> tuple[Tensor, Tensor]:
        """Images with parts of others, and labels (N, classes) with the same shares of theirs."""
        config, u = self.config, self._draws(numbers, "mix")
        assert not isinstance(config.strength, str), "a plan has decided this"
        blends, pastes = u[0] < config.strength * config.mixup, u[0] >= 1 - config.strength * config.cutmix
        share = torch.where(blends, u[1], torch.ones(()))
        pixels = blended(pixels, others, share)
        half = torch.where(pastes, 0.5 * u[2].sqrt(), torch.zeros(()))
        pixels, left = pasted(pixels, others, torch.stack([u[3], u[4], half, half], dim=1))
        kept = (share * left)[:, None]
        return pixels, labels * kept + other_labels * (1 - kept)


def partners(numbers: NDArray[np.integer]) -> NDArray[np.int64]:
    """With which sample each is mixed: its neighbour, which stands in the same batch where batches are even."""
    return np.asarray(numbers, dtype=np.int64) ^ 1


OFTEN = 40  # readings of the images from which on they are changed as far as they may be


def strength_for(epochs: float) -> float:
    """An image that is seen a few times need not be changed; one that is seen often would be learned by heart."""
    return round(min(1.0, epochs / OFTEN), 3)


KEPT = 0.7  # of the images that are like their own class, how many must be so mirrored; clothes 0.85, digits 0.39
ENOUGH = 4000  # images to tell it from


def mirrors_well(pixels: NDArray[np.uint8], classes: NDArray[np.integer]) -> bool:
    """Whether left and right can be exchanged: images (N, C, Y, X) are nearest to the mean of their own class about
    as often when they are mirrored. Clothes can, digits cannot."""
    chosen = np.linspace(0, len(pixels) - 1, min(len(pixels), ENOUGH)).astype(np.int64)
    seen, truth = pixels[chosen].astype(np.float32), np.asarray(classes)[chosen]
    names = np.unique(truth)
    if len(names) < 2:
        return False
    means = np.stack([seen[truth == name].mean(0) for name in names]).reshape(len(names), -1)

    def right(images: NDArray[np.float32]) -> float:
        flat = images.reshape(len(images), -1)
        nearest = (means**2).sum(1) - 2 * flat @ means.T
        return float((names[nearest.argmin(1)] == truth).mean())

    return right(np.ascontiguousarray(seen[..., ::-1])) >= KEPT * right(seen)
