"""A model as Hugging Face stores it: a folder with config.json, safetensors and a tokenizer, read and written.

A folder of timm's, as its hub has them, is read in the same way: its converters know it by the architecture it names.

Nothing in such a folder is believed: settings choose sizes and kinds and nothing else, tensors are compared
with the model before they are loaded, and no code, path or address that a file names is ever followed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from weft.checkpoints.files import read_json, read_tensors, write_json, write_tensors, write_text
from weft.checkpoints.tensor_file import Entry, is_pickled, read_header
from weft.errors import ConfigError, DataError, UnsupportedError, WeightsError
from weft.models import Converter, HuggingFaceConfig, ModelConfig, converter_of
from weft.models.converter import CAUSAL, TEXT_TO_TEXT
from weft.models.preprocessing import PREPROCESSOR, Preprocessing, read_preprocessing, read_timm_preprocessing
from weft.text import END, Tokenizer
from weft.text.hugging_face import TARGET, has_tokenizer, json_with_end, read_folder, read_source

MODEL = "model.safetensors"
INDEX = "model.safetensors.index.json"
SHARD = re.compile(r"[\w.-]+\.safetensors")
FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


class HuggingFaceFolder:
    """A folder as `save_pretrained` leaves it; everything is read when it is first used."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __repr__(self) -> str:
        return f"HuggingFaceFolder({str(self.path)!r})"

    @cached_property
    def settings(self) -> HuggingFaceConfig:
        """Their config.json."""
        path = self.path / "config.json"
        values = read_json(path)
        if not isinstance(values, dict):
            raise DataError(f"{path} is JSON, but no table", expected="the settings of a model")
        return HuggingFaceConfig(values, str(path))

    @cached_property
    def converter(self) -> Converter:
        """How the model is written down."""
        return converter_of(self.settings)

    @cached_property
    def _described(self) -> tuple[ModelConfig, dict[str, tuple[int, ...]]]:
        try:
            config = self.converter.fitted(self.converter.read_config(self.settings), lambda: self.entries)
            return config, config.shapes()
        except ConfigError as error:  # sizes that are absurd, or cannot be together
            raise DataError(f"{self.settings.where}: {error}") from None

    @property
    def config(self) -> ModelConfig:
        """Our config of their model."""
        return self._described[0]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The parameters of their model under our names."""
        return self._described[1]

    @cached_property
    def end_ids(self) -> list[int]:
        """The ids that end a text, as config.json has them."""
        given = self.settings.values.get("eos_token_id")
        return [number for number in (given if isinstance(given, list) else [given]) if type(number) is int]

    @cached_property
    def preprocessing(self) -> Preprocessing | None:
        """What images go through before the model reads them; None where nothing is said of it."""
        path = self.path / PREPROCESSOR
        if path.exists():
            values = read_json(path)
            if not isinstance(values, dict):
                raise DataError(f"{path} is JSON, but no table", expected="how images are prepared")
            return read_preprocessing(HuggingFaceConfig(values, str(path)))
        return read_timm_preprocessing(self.settings) if self.settings.table("pretrained_cfg") else None

    @property
    def has_tokenizer(self) -> bool:
        """Whether there is one to read; a model can be used without."""
        return has_tokenizer(self.path)

    def read_tokenizer(self) -> Tokenizer:
        """Its tokenizer, checked; of a model that translates, that of what it writes."""
        return read_folder(self.path, self.end_ids)

    def read_source_tokenizer(self) -> Tokenizer | None:
        """That of the texts it reads, if it is another."""
        return read_source(self.path)

    # -- weights ------------------------------------------------------------------------------

    @cached_property
    def entries(self) -> dict[str, tuple[Path, Entry]]:
        """Every tensor: in which file, of which type and shape. No numbers are read for this."""
        if (self.path / MODEL).exists():
            return {name: (self.path / MODEL, entry) for name, entry in read_header(self.path / MODEL).items()}
        if not (self.path / INDEX).exists():
            raise self._no_weights()
        found: dict[str, tuple[Path, Entry]] = {}
        places = self._index()
        for shard in sorted(set(places.values())):
            for name, entry in read_header(self.path / shard).items():
                if places.get(name) != shard:
                    where = "names for another shard" if name in places else "does not name"
                    raise DataError(f"{self.path / shard} holds {name[:80]!r}, which {INDEX} {where}")
                found[name] = (self.path / shard, entry)
        for name, shard in places.items():
            if name not in found:
                raise DataError(f"{self.path / shard} does not hold {name[:80]!r}, which {INDEX} says it does")
        return found

    def _index(self) -> dict[str, str]:
        """Tensor → shard. A shard is a file in this very folder: no path leads out of it."""
        path = self.path / INDEX
        index = read_json(path)
        places = index.get("weight_map") if isinstance(index, dict) else None
        if not isinstance(places, dict) or not places:
            raise DataError(f"{path} has no weight_map", expected="which tensor is in which file")
        for shard in places.values():
            if not isinstance(shard, str) or not SHARD.fullmatch(shard):
                given = f"{path} names the file {str(shard)[:80]!r}"
                raise DataError(given, expected="a safetensors file in the same folder")
        return places

    def _no_weights(self) -> DataError:
        others = sorted(p for p in self.path.iterdir() if p.suffix in (".bin", ".pt", ".pth", ".ckpt", ".pkl"))
        if others and others[0].is_file() and is_pickled(others[0]):
            return DataError(
                f"{self.path} has its weights in {others[0].name}: pickled Python objects, which can run any program",
                expected=MODEL,
                advice="convert them where you trust them: from_pretrained(…).save_pretrained(…) writes safetensors",
            )
        return DataError(f"{self.path} has no weights", expected=f"{MODEL}, or shards with {INDEX}")

    def check_weights(self) -> None:
        """Compare names, types and shapes of all tensors with the model, before anything is loaded."""
        self._read({name: torch.empty(entry.shape, device="meta") for name, (_, entry) in self.entries.items()})
        table = self.converter.table_for(self.config, self.entries)
        for name, (path, entry) in self.entries.items():
            if entry.dtype not in FLOATS and table.carries(name):
                raise DataError(f"{path}: {name[:80]!r} has type {entry.dtype}", expected="floating point weights")

    def read_weights(self, config: ModelConfig | None = None) -> dict[str, Tensor]:
        """Our tensors, in float32, in memory of their own; for another config of the same model, as that has them."""
        self.check_weights()
        foreign: dict[str, Tensor] = {}
        for path in sorted({path for path, _ in self.entries.values()}):
            foreign |= read_tensors(path)
        single = {n: t.float() if t.is_floating_point() else t for n, t in foreign.items()}
        mapped = {t.untyped_storage().data_ptr() for t in foreign.values()}
        ours = self._read(single, config)
        # a tensor that still lies in the file would change, or crash us, with the file
        return {n: t.clone() if t.untyped_storage().data_ptr() in mapped else t for n, t in ours.items()}

    def _read(self, foreign: Mapping[str, Tensor], config: ModelConfig | None = None) -> dict[str, Tensor]:
        shapes = self.shapes if config is None else config.shapes()
        try:
            return self.converter.table_for(config or self.config, foreign).read(foreign, shapes)
        except WeightsError as error:
            raise WeightsError(f"{self.path}: {error}") from None

    @cached_property
    def narrowed(self) -> str:
        """The type of the weights if it is not float32, as which they are read; else empty."""
        kinds = {str(entry.dtype).removeprefix("torch.") for _, entry in self.entries.values() if entry.dtype in FLOATS}
        return ", ".join(sorted(kinds - {"float32"}))


def write_folder(
    folder: Path,
    converter: Converter,
    config: ModelConfig,
    weights: Mapping[str, Tensor],
    tokenizer: Tokenizer | None,
    source_tokenizer: Tokenizer | None = None,
    generation: Mapping[str, Any] | None = None,
) -> None:
    """Fill an empty folder with what `from_pretrained` opens: settings, tensors, tokenizer.

    A model that reads one text and writes another may have a `source_tokenizer` for the first. `generation` is what
    its generation_config.json says besides the special tokens, or of them where there is no tokenizer to ask.
    """
    auto = converter.auto_class(config)
    end = None if tokenizer is None else tokenizer.end
    if auto == TEXT_TO_TEXT:
        told = _generation(config, tokenizer, generation or {})
        write_json(folder / "generation_config.json", told)
        ids = {name: told[name] for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
        if ids["pad_token_id"] is not None and ids["pad_token_id"] >= min(_vocabularies(config)):
            ids["pad_token_id"] = None  # their class wants a row for it in both tables
    elif auto == CAUSAL:
        # of a stranger's tokenizer we know how a text ends and not how it begins
        begin = end if tokenizer is not None and tokenizer.end_name == END else None
        ids = {"bos_token_id": begin, "eos_token_id": end, "pad_token_id": None}
        write_json(folder / "generation_config.json", ids | {"pad_token_id": end})
    elif not _vocabularies(config):  # it reads no tokens
        ids = {}
    else:
        ids = {"pad_token_id": None if tokenizer is None else tokenizer.special.pad}
    write_json(folder / "config.json", {**converter.write_config(config), **ids})
    if tokenizer is not None:
        _write_tokenizer(folder, source_tokenizer or tokenizer, config, auto)
        if source_tokenizer is not None:  # who opens the folder there reads before writing
            (folder / TARGET).mkdir()
            _write_tokenizer(folder / TARGET, tokenizer, config, auto)
    theirs = converter.table(config, prefix=converter.prefix).write(weights)
    write_tensors(folder / MODEL, theirs, {"format": "pt"})
    (folder / MODEL).chmod((folder / "config.json").stat().st_mode)  # the library lets nobody else read what it writes


def _vocabularies(config: ModelConfig) -> list[int]:
    sizes = (getattr(config, name, None) for name in ("vocab_size", "source_vocab_size"))
    return [size for size in sizes if size is not None]


def _generation(config: ModelConfig, tokenizer: Tokenizer | None, told: Mapping[str, Any]) -> dict[str, Any]:
    """What their `generate` needs to write as we do: where a text begins and ends, and how far it goes."""
    if tokenizer is not None:
        pad = tokenizer.special.pad
        told = {**told, "eos_token_id": tokenizer.end, "pad_token_id": tokenizer.end if pad is None else pad}
    return {
        "decoder_start_token_id": getattr(config, "start", None),
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
        "max_length": getattr(config, "max_length", None),  # which would be 20
        **told,
    }


def _write_tokenizer(folder: Path, tokenizer: Tokenizer, config: ModelConfig, auto: str) -> None:
    if auto == TEXT_TO_TEXT:
        write_text(folder / "tokenizer.json", json_with_end(tokenizer))
    else:
        tokenizer.save(folder / "tokenizer.json")
    write_json(folder / "tokenizer_config.json", _tokenizer_config(tokenizer, config, auto))


def _tokenizer_config(tokenizer: Tokenizer, config: ModelConfig, auto: str) -> dict[str, Any]:
    names = dict(tokenizer.special_names)
    inputs = {}
    if auto == CAUSAL:
        names |= {"bos_token": END} if tokenizer.end_name == END else {}
    elif auto == TEXT_TO_TEXT:
        names.setdefault("pad_token", tokenizer.end_name)  # masked wherever it stands for padding
        inputs = {"model_input_names": ["input_ids", "attention_mask"]}
    else:
        if names.get("sep_token") == names["eos_token"]:  # BERT has no token of its own for the end
            del names["eos_token"]
        # unless they are asked for here, transformers leaves out the segments, and says nothing
        inputs = {"model_input_names": ["input_ids", "token_type_ids", "attention_mask"]}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **names,
        **inputs,
        "clean_up_tokenization_spaces": False,
        "model_max_length": getattr(config, "max_length", None),
    }


# -- from the hub -----------------------------------------------------------------------------

REMOTE = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
WANTED = [
    "config.json",
    PREPROCESSOR,
    "generation_config.json",
    MODEL,
    INDEX,
    "model-*.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    f"{TARGET}/tokenizer*.json",
    "target_vocab.json",
    "*.spm",
    "spiece.model",
]  # never code


def is_remote_name(name: str) -> bool:
    """Whether this is `owner/name` and not a folder here."""
    return bool(REMOTE.fullmatch(name)) and not Path(name).exists()


def fetch(name: str) -> Path:
    """Download a model from the Hugging Face hub and say where it is: the one thing in Weft that uses the network."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise UnsupportedError(
            f"there is no folder {name}, and to download it the package huggingface_hub is needed",
            advice="pip install huggingface_hub, or give a folder that is on this computer",
        ) from None
    try:
        return Path(snapshot_download(name, allow_patterns=WANTED))
    except Exception as error:  # of many kinds: offline, unknown, private, disk full
        why = (str(error).strip().splitlines() or [type(error).__name__])[0][:160]
        raise DataError(
            f"{name} cannot be downloaded: {why}",
            advice="is the name right, and is this computer online? A folder that is here already needs no network",
        ) from None
