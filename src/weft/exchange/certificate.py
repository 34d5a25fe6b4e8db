"""The proof that an exported folder is the model: read again by Weft, and by transformers where it is installed."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn

from weft.checkpoints.hugging_face import HuggingFaceFolder
from weft.errors import DataError
from weft.exchange.probes import ImageProbe, Probe, Results, TranslatingProbe, compare_tokenizers, probe_for
from weft.models import EncoderDecoder, ModelConfig
from weft.models.preprocessing import Preprocessing
from weft.tasks.classify.prepared_pixels import compare_pixels
from weft.text import Tokenizer
from weft.text.hugging_face import TARGET

T = TypeVar("T")

TOLERANCE = 1e-4  # of the largest number; equal computations in another order differ by about 1e-6
FLOOR = 0.01  # a head may well say almost nothing; its rounding is that of the states it reads


@dataclass(frozen=True)
class Exported:
    """What was written: a model and what belongs to it. `never` are tokens that it does not write; `preprocessing` is
    what images go through before it sees them."""

    model: nn.Module
    config: ModelConfig
    tokenizer: Tokenizer | None = None
    source_tokenizer: Tokenizer | None = None
    end: int | None = None
    never: Sequence[int] = ()
    preprocessing: Preprocessing | None = None


def certify(exported: Exported, folder: HuggingFaceFolder) -> dict[str, Any]:
    """What was compared and how far it differs; `DataError` if the folder is not the same model."""
    model, config = exported.model, exported.config
    probe = probe_for(config)
    results = _results(probe.ours, model)
    if folder.converter.settings(folder.config) != folder.converter.settings(config):
        raise DataError("read again, config.json describes another model", advice="please report this")
    if folder.preprocessing != exported.preprocessing:
        raise DataError("read again, the folder prepares images in another way", advice="please report this")
    weights = folder.read_weights(config)  # the converter may have another order of channels, and undoes it here
    different = [name for name, p in model.named_parameters() if not _same_bits(p.detach(), weights[name])]
    if different:
        raise DataError(f"read again, {different[0]!r} and {len(different) - 1} more are not what was written")
    again = folder.config.with_weights(weights if folder.config == config else folder.read_weights())
    difference = _difference("Weft", results, _results(probe.ours, again.eval()))
    return {
        **({"images_compared": probe.images} if isinstance(probe, ImageProbe) else {"tokens_compared": probe.tokens}),
        "compared": {name: float(values.abs().max()) for name, values in results.items()},
        "weights": "bit-equal",
        "difference": difference,
        "transformers": _compare_with_transformers(folder, exported, probe, results),
    }


def _results(read: Callable[[Any], T], model: Any) -> T:
    with torch.no_grad():
        return read(model)


def _difference(whose: str, ours: Results, found: Results) -> float:
    """The largest of all; `DataError` if it is more than rounding. NaN against a number counts as infinite."""
    if ours.keys() != found.keys():
        raise DataError(f"opened by {whose}, the folder has other heads: {', '.join(found)}", expected=", ".join(ours))
    sizes = {name: float(values.abs().max()) for name, values in ours.items()}
    largest = 0.0
    for name, values in ours.items():
        apart = _apart(values, found[name])
        if not apart <= TOLERANCE * max(1e-6, sizes[name], FLOOR * max(sizes.values())):  # a NaN is not within either
            raise DataError(
                f"opened by {whose}, the folder gives {name} that differ by {apart:.2g} (of {sizes[name]:.2g})",
                expected="the same model",
                advice="nothing was exported; please report this",
            )
        largest = max(largest, apart)
    return largest


def _apart(a: Tensor, b: Tensor) -> float:
    if a.shape != b.shape:
        return torch.inf
    return 0.0 if torch.equal(a, b) else float((a - b).abs().nan_to_num(nan=torch.inf).max())


def _same_bits(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and torch.equal(a.contiguous().view(torch.int32), b.contiguous().view(torch.int32))


# -- transformers -----------------------------------------------------------------------------


def _compare_with_transformers(
    folder: HuggingFaceFolder, exported: Exported, probe: Probe, results: Results
) -> dict[str, Any]:
    """Version, largest difference, and whether the ids are the same; or why nothing was compared."""
    if importlib.util.find_spec("transformers") is None:
        return {"not_compared": "transformers is not installed"}
    with _without_network():
        import transformers

        version, name = str(transformers.__version__), folder.converter.name
        if name not in transformers.CONFIG_MAPPING:
            return {"not_compared": f"transformers {version} does not know {name}"}
        auto, where = folder.converter.auto_class(folder.config), str(folder.path)
        result: dict[str, Any] = {"version": version}
        try:
            with _quiet(transformers):
                opener: Any = getattr(transformers, auto)
                model = opener.from_pretrained(where, local_files_only=True, trust_remote_code=False).eval()
                result["difference"] = _difference("transformers", results, _results(probe.theirs, model))
                _check_labels(folder, model.config)
                if isinstance(probe, TranslatingProbe):
                    result["tokens_written"] = _compare_writing(probe, exported, model)
                for tokenizer, place in _tokenizers(exported, folder.path):
                    theirs = transformers.AutoTokenizer.from_pretrained(str(place), local_files_only=True)
                    result |= compare_tokenizers(tokenizer, theirs, auto)
                if exported.preprocessing is not None and importlib.util.find_spec("PIL") is not None:
                    opener = transformers.AutoImageProcessor
                    processor = opener.from_pretrained(where, local_files_only=True)
                    result["pixel_difference"] = compare_pixels(exported.preprocessing, processor)
        except DataError:
            raise
        except Exception as error:  # whatever it is, the folder is of no use
            why = (str(error).strip().splitlines() or [type(error).__name__])[0][:160]
            raise DataError(f"transformers {version} cannot open what was exported: {why}") from error
    return result


def _compare_writing(probe: TranslatingProbe, exported: Exported, theirs: Any) -> int:
    told = theirs.generation_config
    for name, wanted in (("decoder_start_token_id", probe.start), ("eos_token_id", exported.end)):
        if getattr(told, name) != wanted:
            raise DataError(f"opened by transformers, the folder has {name} = {getattr(told, name)}, not {wanted}")
    model = cast(EncoderDecoder, exported.model)
    return int(_results(lambda given: probe.compare_writing(given, theirs, exported.end, exported.never), model))


def _tokenizers(exported: Exported, path: Path) -> Iterator[tuple[Tokenizer, Path]]:
    """Each tokenizer and where others find it: first that of what is read, which may be that of what is written too."""
    if exported.tokenizer is not None:
        yield exported.source_tokenizer or exported.tokenizer, path
        if exported.source_tokenizer is not None:
            yield exported.tokenizer, path / TARGET


def _check_labels(folder: HuggingFaceFolder, theirs: Any) -> None:
    """The names of classes, and whether a text has one of them, several, or a number."""
    told = folder.settings.values
    for key, found in (
        ("id2label", {str(number): label for number, label in theirs.id2label.items()}),
        ("problem_type", theirs.problem_type),
    ):
        if key in told and told[key] != found:
            raise DataError(f"opened by transformers, the folder has another {key}")


@contextmanager
def _without_network() -> Iterator[None]:
    """The folder is all that is needed; this makes sure that nothing else is asked for."""
    names = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Its warnings and bars are about loading, which we check ourselves."""
    level = transformers.logging.get_verbosity()
    bars = transformers.utils.logging.is_progress_bar_enabled()
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers.logging.set_verbosity(level)
        if bars:
            transformers.utils.logging.enable_progress_bar()
