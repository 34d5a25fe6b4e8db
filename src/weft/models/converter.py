"""Converters of other programs' checkpoints: their settings ⇄ our config, their tensors ⇄ ours.

A converter is one small class beside its family (`gpt/converters.py`); being defined puts it into `Converter.registry`
under the name that Hugging Face calls `model_type`. A model that a converter cannot represent exactly is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from weft.errors import UnsupportedError, did_you_mean
from weft.models.base import ModelConfig
from weft.models.field_table import FieldTable
from weft.models.hugging_face_config import HuggingFaceConfig, short
from weft.weights import WeightTable

OTHER_FAMILY = "it is of another family"
CAUSAL = "AutoModelForCausalLM"  # opens models that write
TEXT_TO_TEXT = "AutoModelForSeq2SeqLM"  # opens models that read one text and write another


class Converter:
    """One format of another program.

    name          what their config.json calls it (`model_type`)
    architecture  their class, which reads it (the usual one, if a head decides: `architecture_of`)
    prefix        the prefix of tensor names of the model without its head

    A subclass has a `family` (the class of our config), its settings as one table (`fields`), its tensors as another.
    """

    name: ClassVar[str]
    architecture: ClassVar[str]
    prefix: ClassVar[str]
    family: ClassVar[type[ModelConfig]]
    fields: ClassVar[FieldTable] = FieldTable()
    registry: ClassVar[dict[str, Converter]] = {}
    nameless: ClassVar[list[Converter]] = []  # of files that have no `model_type`

    def __init_subclass__(cls, name: str = "", architecture: str = "", prefix: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        if name:
            cls.name, cls.architecture, cls.prefix = name, architecture, prefix
            Converter.registry[name] = cls()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def is_meant(self, theirs: HuggingFaceConfig) -> bool:
        """Whether settings without a `model_type` are of this converter."""
        return False

    def read_config(self, theirs: HuggingFaceConfig) -> Any:
        """Our config of the model that their settings describe; refuses what we cannot compute."""
        return self.fields.read(theirs, self.family)

    def fitted(self, config: ModelConfig, names: Callable[[], Iterable[str]]) -> ModelConfig:
        """The config, where only the names of the tensors show which heads there are; calling `names` opens the
        file."""
        return config

    def architecture_of(self, config: ModelConfig) -> str:
        """Their class for this config."""
        return self.architecture

    def auto_class(self, config: ModelConfig) -> str:
        """Which of transformers' `Auto…` classes opens it whole."""
        return CAUSAL

    def reasons(self, config: ModelConfig) -> list[str]:
        """Why this converter cannot represent the config: one sentence for each field."""
        return self.fields.reasons(config) if isinstance(config, self.family) else [OTHER_FAMILY]

    def why_not(self, config: ModelConfig) -> str:
        """All reasons in one sentence; empty if it can represent the model."""
        return "; ".join(self.reasons(config))

    def advice(self, config: ModelConfig) -> str:
        """What to do about a model of its family that it cannot represent."""
        return ""

    def settings(self, config: ModelConfig) -> dict[str, Any]:
        """Their settings for a config that the converter can represent."""
        return self.fields.write(config)

    def losses(self, config: ModelConfig) -> list[str]:
        """Settings that are not written because they change training only, not the model's outputs."""
        return self.fields.losses(config)

    def table(self, config: ModelConfig, *, prefix: str) -> WeightTable:
        """Their tensors and ours."""
        return WeightTable()

    def write_config(self, config: ModelConfig) -> dict[str, Any]:
        """Their config.json; `UnsupportedError` with the reason if the converter cannot represent it."""
        if reason := self.why_not(config):
            raise UnsupportedError(f"the converter {self.name!r} cannot write this model: {reason}")
        about = {"architectures": [self.architecture_of(config)], "model_type": self.name, "dtype": "float32"}
        return about | self.settings(config)

    def table_for(self, config: ModelConfig, names: Iterable[str]) -> WeightTable:
        """The table for a file with these tensors: of the whole model, or of the model without its head."""
        whole = any(name.startswith(self.prefix) for name in names)
        return self.table(config, prefix=self.prefix if whole else "")


def converter_of(theirs: HuggingFaceConfig) -> Converter:
    """The converter that their `model_type` names, or that knows the `architecture` of timm's.

    A model that needs code of its own, or is quantized, is refused.
    """
    theirs.must_be("auto_map", None, {}, why="the model needs code of its own, and Weft runs no such code")
    theirs.must_be("quantization_config", None, {}, why="quantized weights cannot be read")
    name = theirs.values.get("model_type")
    if name is None and "architecture" in theirs.values:
        return _by_architecture(theirs)
    if not isinstance(name, str) or name not in Converter.registry:
        raise UnsupportedError(
            f"{theirs.where}: model_type = {short(name)}",
            expected=f"one of {', '.join(Converter.registry)}",
            advice=hint
            if "did you" in (hint := did_you_mean(str(name)[:60], Converter.registry))
            else "a family of your own is loaded by --plugin FILE.py",
        )
    return Converter.registry[name]


def is_foreign(values: object) -> bool:
    """Whether a config.json is of another program, and not of a run of Weft."""
    return isinstance(values, dict) and "format" not in values and ("model_type" in values or "architecture" in values)


def _by_architecture(theirs: HuggingFaceConfig) -> Converter:
    """The converter that knows what timm calls an architecture."""
    found = next((converter for converter in Converter.nameless if converter.is_meant(theirs)), None)
    if found is None:
        families = ", ".join(converter.architecture for converter in Converter.nameless)
        raise UnsupportedError(
            f"{theirs.where}: architecture = {short(theirs.values['architecture'])}",
            expected=f"one that Weft can read from timm: {families}",
        )
    return found


def converter_for(config: ModelConfig) -> Converter:
    """The first converter that can represent this model; if none can, the error says why for each."""
    reasons = {name: converter.reasons(config) for name, converter in Converter.registry.items()}
    for name, found in reasons.items():
        if not found:
            return Converter.registry[name]
    near = {name: found for name, found in reasons.items() if found != [OTHER_FAMILY]}
    told = {name: found[0] + (f" (and {len(found) - 1} more)" if found[1:] else "") for name, found in near.items()}
    if len(near) == 1:
        told = {name: "; ".join(found) for name, found in near.items()}
    raise UnsupportedError(
        "no converter of Hugging Face can write this model",
        expected="; ".join(f"{name}: {reason}" for name, reason in told.items())
        or f"a family that it has a class for, not {config.kind}: {', '.join(Converter.registry)}",
        advice=next((advice for name in near if (advice := Converter.registry[name].advice(config))), ""),
    )
