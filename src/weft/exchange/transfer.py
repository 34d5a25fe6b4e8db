"""Models from Hugging Face into a run directory, and runs out into a Hugging Face folder, with a proof."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from torch import Tensor

from weft import __version__
from weft.checkpoints import RunDirectory
from weft.checkpoints.files import new_folder, write_json, write_tensors, write_text
from weft.checkpoints.hugging_face import HuggingFaceFolder, fetch, is_remote_name, write_folder
from weft.checkpoints.word_vector_file import is_word_vector_file
from weft.errors import DataError, UnsupportedError
from weft.exchange.certificate import Exported, certify
from weft.exchange.formats import check_format
from weft.exchange.model_card import imported_readme, model_card
from weft.models import (
    CausalLM,
    EncodesImages,
    LearnsByCounting,
    ModelConfig,
    Seq2SeqLM,
    WordVectorTable,
    converter_for,
)
from weft.models.classes import Classes
from weft.models.preprocessing import PREPROCESSOR, Preprocessing, preprocessing_settings
from weft.tasks.classify.image_form import preprocessing_of
from weft.tasks.run import Run
from weft.tasks.task import find_use, task_of_model
from weft.tasks.translate.translator import DEFAULT_SEARCH
from weft.text.hugging_face import lacking_pieces


def import_model(source: str | Path, out: str | Path) -> dict[str, Any]:
    """Make a run directory of a Hugging Face folder, of `owner/name` on its hub, of an ARPA file, or of vectors as
    word2vec writes them; says what was found.

    The run is there whole or not at all: everything is read and checked before anything is written.
    """
    RunDirectory(out).check_free()
    if Path(source).is_file():
        return _import_file(Path(source), Path(out))
    path = fetch(str(source)) if is_remote_name(str(source)) else Path(source)
    if not path.is_dir():
        raise DataError(
            f"there is no folder or file {source}",
            expected="a Hugging Face folder, owner/name as the hub writes it, an ARPA file, or vectors of words",
            advice="a model that is not on this computer has two words: openai-community/gpt2",
        )
    run = Run(path)
    if run.folder is None:
        run.directory.read_config()  # says so if it is no run either
        raise DataError(f"{source} is a run of Weft already", expected="a Hugging Face folder")
    folder, model = run.folder, run.model
    weights: dict[str, Tensor] = dict(model.named_parameters())
    (described, use), prepared, task = find_use(run.model_config), _prepared(run), task_of_model(run.model_config)
    if EncodesImages in run.model_config.provides and prepared is None:
        use = described.words.uses[EncodesImages.__name__]
    with new_folder(Path(out)) as beside:
        about = {"task": task, "model": run.model_config.to_dict()}
        origin: dict[str, Any] = {"converter": folder.converter.name, "source": str(source), "weft": __version__}
        if prepared is not None:
            origin["preprocessing"] = prepared.to_dict()
        RunDirectory(beside).write_config(about | {"origin": origin | _ends(folder, run.model_config)})
        if folder.has_tokenizer:
            _save_tokenizers(run, RunDirectory(beside))
        write_tensors(beside / "model.safetensors", weights)
        write_text(beside / "README.md", imported_readme(Path(out), str(source), folder.converter, use))
    return {
        "run": str(out),
        "source": str(source),
        "converter": folder.converter.name,
        "task": task,
        "use": use.name,
        "parameters": sum(p.numel() for p in weights.values()),
        "tokenizer": run.tokenizer.kind if folder.has_tokenizer else None,
        "vocab_size": getattr(run.model_config, "vocab_size", None),
        "max_length": getattr(run.model_config, "max_length", None),
        **_seen(run.model_config, prepared),
        "notes": _import_notes(folder, run.model_config),
    }


def _prepared(run: Run) -> Preprocessing | None:
    """What images go through before the model; None if it looks at none, or if nothing is said of it."""
    return preprocessing_of(run) if EncodesImages in run.model_config.provides else None


def _seen(config: ModelConfig, prepared: Preprocessing | None) -> dict[str, Any]:
    """What there is to say of a model of images."""
    if EncodesImages not in config.provides:
        return {}
    given = cast(Any, config)
    size = getattr(config, "image_size", None) if prepared is None else prepared.image_size
    return {"image_size": size, "channels": given.channels, "classes": given.head.classes}


def _ends(folder: HuggingFaceFolder, config: ModelConfig) -> dict[str, int]:
    """The tokens that end and fill up a text; a tokenizer would know, but there may be none."""
    if Seq2SeqLM not in config.provides:
        return {}
    given = {"end": next(iter(folder.end_ids), None), "pad": folder.settings.values.get("pad_token_id")}
    return {role: number for role, number in given.items() if type(number) is int and number >= 0}


def _save_tokenizers(run: Run, into: RunDirectory) -> None:
    run.tokenizer.save(into.tokenizer_file)
    source = run.source_tokenizer
    if source is run.tokenizer:
        return
    if source.special_names != run.tokenizer.special_names:  # one file beside both says what they are called
        raise UnsupportedError(
            f"{run.directory.path} has two tokenizers, whose special tokens have different names", expected="the same"
        )
    source.save(into.source_tokenizer_file)


def _import_notes(folder: HuggingFaceFolder, config: ModelConfig) -> list[str]:
    notes = []
    looks, head = EncodesImages in config.provides, getattr(config, "head", None)
    if folder.narrowed:
        notes.append(f"the weights were {folder.narrowed} and are now float32")
    if not looks and not folder.has_tokenizer:
        what = "reads and writes" if {CausalLM, Seq2SeqLM} & config.provides else "reads"
        notes.append(f"there is no tokenizer: the model {what} ids only")
    if not find_use(config)[1].trained:
        gives = "classes: " if looks else "tokens or classes: it gives vectors, and "
        notes.append(f"it has no head for {gives}training can begin from it")
    elif isinstance(head, Classes) and not head.labels:
        notes.append("its classes have no names" if head.classes > 1 else "it gives a number, not a class")
    if looks and folder.preprocessing is None:
        notes.append("nothing says how images are prepared for it: it can be trained further, and not used as it is")
    return notes


def _import_file(source: Path, out: Path) -> dict[str, Any]:
    """Which format it is in, its content says."""
    if is_word_vector_file(source):
        from weft.exchange.word_vectors import import_vectors

        return import_vectors(source, out)
    from weft.exchange.arpa import import_arpa

    return import_arpa(source, out)


def export_run(path: str | Path, target: str | Path, *, to: str | None = None) -> dict[str, Any]:
    """Write a run as other programs read it, by default in the format that its family has; gives its certificate."""
    check_format(to)
    to = to or _usual_format(Run(path).model_config)
    if to == "arpa":
        from weft.exchange.arpa import export_arpa

        return export_arpa(path, target)
    if to != "hf":
        from weft.exchange.word_vectors import export_vectors

        return export_vectors(Run(path), target, to=to)
    return _export_folder(path, Path(target))


def _usual_format(config: ModelConfig) -> str:
    if LearnsByCounting in config.provides:
        return "arpa"
    return "word2vec" if WordVectorTable in config.provides else "hf"


def _export_folder(path: str | Path, target: Path) -> dict[str, Any]:
    """A folder that transformers' `Auto…` classes open.

    The first converter that can say the model exactly is taken. The folder is there, proven, or not at all.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise DataError(f"{target} is there already", expected="a new folder", advice="choose another name")
    run = Run(path)
    converter = converter_for(run.model_config)
    weights = dict(run.model.named_parameters())
    exported, generation = _exported(run)
    left_out = converter.losses(run.model_config) + _lacking(exported) + _other_size(exported)
    images = None if exported.preprocessing is None else preprocessing_settings(exported.preprocessing)
    with new_folder(target) as beside:
        tokenizers = exported.tokenizer, exported.source_tokenizer
        write_folder(beside, converter, run.model_config, weights, *tokenizers, generation)
        if images is not None:
            write_json(beside / PREPROCESSOR, images)
        write_text(beside / "README.md", model_card(target, run, converter, left_out))
        certificate = {
            "run": str(path),
            "folder": str(target),
            "weft": __version__,
            "converter": converter.name,
            "architecture": converter.architecture_of(run.model_config),
            "auto_class": converter.auto_class(run.model_config),
            "parameters": sum(p.numel() for p in weights.values()),
            "left_out": left_out,
            **certify(exported, HuggingFaceFolder(beside)),
        }
        write_json(beside / "certificate.json", certificate)
    return certificate


def _lacking(exported: Exported) -> list[str]:
    """What a tokenizer for transformers cannot say."""
    counts = [lacking_pieces(one) for one in (exported.source_tokenizer, exported.tokenizer) if one is not None]
    what = "pieces of text that the vocabulary lacks (unknown here, spelled in smaller pieces there)"
    return [f"{sum(counts)} {what}"] if any(counts) else []


def _other_size(exported: Exported) -> list[str]:
    """A model that was made for images of another size stretches its positions; there, that has to be asked for."""
    made, seen = getattr(exported.config, "image_size", None), exported.preprocessing
    if made is None or seen is None or made == seen.image_size:
        return []
    return [f"images of {seen.image_size} for a model of {made} (there: interpolate_pos_encoding=True in each call)"]


def _exported(run: Run) -> tuple[Exported, dict[str, Any]]:
    """A run as it is exported; and, if it translates, what makes transformers' `generate` write as it does."""
    tokenizer = run.tokenizer if run.has_tokenizer else None
    exported = Exported(run.model, run.model_config, tokenizer, preprocessing=_prepared(run))
    if Seq2SeqLM not in run.model_config.provides:
        return exported, {}
    told: dict[str, Any] = {
        "num_beams": DEFAULT_SEARCH.beams,
        "length_penalty": DEFAULT_SEARCH.alpha,
        "early_stopping": False,
    }
    if tokenizer is None:
        end, pad = run.origin.get("end"), run.origin.get("pad")
        ids = {} if end is None else {"eos_token_id": end, "pad_token_id": end if pad is None else pad}
        return replace(exported, end=end), told | ids
    search = DEFAULT_SEARCH.search(tokenizer, int(cast(Any, run.model_config).start))
    never = {"bad_words_ids": [[token] for token in search.suppress]} if search.suppress else {}
    source = None if run.source_tokenizer is tokenizer else run.source_tokenizer
    return replace(exported, source_tokenizer=source, end=search.end, never=search.suppress), told | never
