"""The classes of a model: how many, their names, and whether several hold at once (multilabel)."""

from __future__ import annotations

from weft.config import Config, Count
from weft.errors import ConfigError


class Classes(Config):
    """A score for each class; one class is a regression. `labels` are their names, if they have any.

    `multilabel`: any number of the labels may hold at once; each score is that of a separate yes or no.
    """

    classes: Count = 2
    labels: tuple[str, ...] = ()
    multilabel: bool = False

    def check(self) -> None:
        super().check()
        if self.labels and len(self.labels) != self.classes:
            raise ConfigError(f"{len(self.labels)} labels for {self.classes} classes", expected="one for each, or none")
        if len(set(self.labels)) != len(self.labels):
            raise ConfigError("labels that occur twice", expected="a name of its own for each class")
