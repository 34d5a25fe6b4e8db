"""How timm stores its models: config.json names an `architecture`, and what it was trained for (`pretrained_cfg`).

Such a folder has no `model_type`. The name of the architecture implies all its sizes, so these are listed here; further
settings (`model_args`) are read where our config has a field for them, and refused where it has none. This format is
read only: models are written in the format of Hugging Face's own classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from weft.errors import DataError, UnsupportedError
from weft.models.base import ModelConfig
from weft.models.class_converter import distinct
from weft.models.converter import Converter
from weft.models.field_table import FieldTable
from weft.models.hugging_face_config import HuggingFaceConfig
from weft.weights import WeightTable


class TimmConverter(Converter):
    """One family of timm's. A subclass has these, and a `table(config, *, prefix="")`:

    family         our class of config
    architectures  what timm calls it, without the tag behind the point → fields of our config
    arguments      what `model_args` may hold, and our field for each
    pools          the values of `global_pool`; the first is the default
    """

    architectures: ClassVar[dict[str, dict[str, Any]]] = {}
    arguments: ClassVar[FieldTable] = FieldTable()
    pools: ClassVar[tuple[str, ...]] = ("avg",)
    prefix = ""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.name, cls.architecture = f"timm-{cls.family.kind}", cls.family.kind
        Converter.nameless.append(cls())

    def sizes_of(self, architecture: str) -> dict[str, Any] | None:
        """The fields of our config for an architecture; None if it is not known."""
        return self.architectures.get(architecture)

    def is_meant(self, theirs: HuggingFaceConfig) -> bool:
        return self.sizes_of(_architecture(theirs)) is not None

    def read_config(self, theirs: HuggingFaceConfig) -> ModelConfig:
        fields = self.sizes_of(_architecture(theirs))
        assert fields is not None  # `is_meant` said so
        told = HuggingFaceConfig(theirs.table("pretrained_cfg"), f"{theirs.where}: pretrained_cfg")
        args = HuggingFaceConfig(theirs.table("model_args"), f"{theirs.where}: model_args")
        for settings in (told, theirs, args):
            settings.must_be("global_pool", *self.pools, None, why="the states are pooled in another way")
        changes = {"head": {"classes": _classes(theirs, told)}, **self._sizes(told)}
        config = self.family(**fields).override(changes)
        config = config.override(self._changes(args))
        labels = _labels(theirs)
        count = config.to_dict()["head"]["classes"]
        return config.override({"head.labels": labels}) if labels and len(labels) == count else config

    def _sizes(self, told: HuggingFaceConfig) -> dict[str, int]:
        """Channels, rows and columns of the images."""
        if told.values.get("input_size") is None:
            return {}
        shape = told.sizes("input_size")
        if len(shape) != 3:
            raise DataError(f"{told.where}: input_size = {shape}", expected="channels, rows, columns")
        side = HuggingFaceConfig({"input_size": shape[1:]}, told.where).side("input_size")
        return {"channels": shape[0]} | ({"image_size": side} if "img_size" in self.arguments.known else {})

    def _changes(self, args: HuggingFaceConfig) -> dict[str, Any]:
        known = self.arguments.known
        for word, value in args.values.items():
            if word not in known | {"global_pool"}:
                given = f"{args.where}: {str(word)[:60]} = {str(value)[:60]}"
                raise UnsupportedError(given, expected=f"one of {', '.join(sorted(known))}")
        rows = [row for row in self.arguments.rows if any(key in args.values for key in row.keys)]
        return {path: value for row in rows for path, value in row.read(args, {}).items()}

    def table(self, config: ModelConfig, *, prefix: str = "") -> WeightTable:
        return WeightTable()


def _architecture(theirs: HuggingFaceConfig) -> str:
    """Its name without the tag that says what it was trained on."""
    name = theirs.values.get("architecture")
    return name.split(".")[0] if isinstance(name, str) else ""


def _classes(theirs: HuggingFaceConfig, told: HuggingFaceConfig) -> int:
    for settings in (theirs, told):
        found = settings.values.get("num_classes")
        if found is not None:
            return settings.token("num_classes")
    return 1000


def _labels(theirs: HuggingFaceConfig) -> tuple[str, ...]:
    """Names of the classes, if there are any."""
    given = theirs.values.get("label_names")
    if isinstance(given, Mapping):
        given = [given.get(str(i)) for i in range(len(given))]
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        return ()
    return distinct(given)
