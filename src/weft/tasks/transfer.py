"""Models from Hugging Face into a run directory, and runs out into a Hugging Face folder, with a proof."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from torch import Tensor

from weft import __version__
from weft.checkpoints import FORMAT, RunDirectory
from weft.checkpoints.files import new_folder, write_json, write_tensors, write_text
from weft.checkpoints.hugging_face import HuggingFaceFolder, fetch, is_remote_name, write_folder
from weft.checkpoints.word_vector_file import is_word_vector_file
from weft.errors import ConfigError, DataError, UnsupportedError, did_you_mean
from weft.models import BERTConfig, ModelConfig, NGramConfig, Word2VecConfig, layout_for
from weft.models.bert import ClassesConfig
from weft.models.pictures import PictureConfig
from weft.models.preprocessing import PREPROCESSOR, Preprocessing, preprocessing_settings
from weft.tasks.certificate import Exported, certify
from weft.tasks.model_card import imported_readme, model_card
from weft.tasks.picture_form import preprocessing_of
from weft.tasks.purpose import purpose, use_of
from weft.tasks.run import Run
from weft.tasks.translating import THOROUGH
from weft.text.hugging_face import lacking_pieces

FORMATS = ("hf", "arpa", "word2vec", "word2vec-binary")


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
    task = purpose(run.model_config)
    use, prepared = use_of(task, run.model_config), _prepared(run)
    if isinstance(run.model_config, PictureConfig) and prepared is None:
        use = "begin"
    with new_folder(Path(out)) as beside:
        about = {"format": FORMAT, "task": task, "model": run.model_config.to_dict()}
        origin: dict[str, Any] = {"layout": folder.layout.name, "source": str(source), "weft": __version__}
        if prepared is not None:
            origin["preprocessing"] = prepared.to_dict()
        write_json(beside / "config.json", about | {"origin": origin | _ends(folder, task)})
        if folder.has_tokenizer:
            _save_tokenizers(run, RunDirectory(beside))
        write_tensors(beside / "model.safetensors", weights)
        write_text(beside / "README.md", imported_readme(Path(out), str(source), folder.layout, use))
    return {
        "run": str(out),
        "source": str(source),
        "layout": folder.layout.name,
        "task": task,
        "use": use,
        "parameters": sum(p.numel() for p in weights.values()),
        "tokenizer": run.tokenizer.kind if folder.has_tokenizer else None,
        "vocab_size": getattr(run.model_config, "vocab_size", None),
        "max_length": getattr(run.model_config, "max_length", None),
        **_seen(run.model_config, prepared),
        "notes": _import_notes(folder, run.model_config, task),
    }


def _prepared(run: Run) -> Preprocessing | None:
    """What pictures go through before the model; None if it looks at none, or if nothing is said of it."""
    return preprocessing_of(run) if isinstance(run.model_config, PictureConfig) else None


def _seen(config: ModelConfig, prepared: Preprocessing | None) -> dict[str, Any]:
    """What there is to say of a model of pictures."""
    if not isinstance(config, PictureConfig):
        return {}
    size = getattr(config, "image_size", None) if prepared is None else prepared.image_size
    return {"image_size": size, "channels": config.channels, "classes": config.head.classes}


def _ends(folder: HuggingFaceFolder, task: str) -> dict[str, int]:
    """The tokens that end and fill up a text; a tokenizer would know, but there may be none."""
    if task != "translate":
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


def _import_notes(folder: HuggingFaceFolder, config: ModelConfig, task: str) -> list[str]:
    notes = []
    if folder.narrowed:
        notes.append(f"the weights were {folder.narrowed} and are now float32")
    if isinstance(config, PictureConfig):
        return notes + _picture_notes(folder, config)
    if not folder.has_tokenizer:
        what = "reads and writes" if task in ("generate", "translate") else "reads"
        notes.append(f"there is no tokenizer: the model {what} ids only")
    if task == "read":
        notes.append("it has no head for tokens or classes: it gives vectors, and training can begin from it")
    if isinstance(config, BERTConfig) and isinstance(config.head, ClassesConfig) and not config.head.labels:
        notes.append("its classes have no names" if config.head.classes > 1 else "it gives a number, not a class")
    return notes


def _picture_notes(folder: HuggingFaceFolder, config: PictureConfig) -> list[str]:
    notes = []
    if not config.head.classes:
        notes.append("it has no head for classes: training can begin from it")
    elif not config.head.labels:
        notes.append("its classes have no names" if config.head.classes > 1 else "it gives a number, not a class")
    if folder.preprocessing is None:
        notes.append("nothing says how pictures are prepared for it: it can be trained further, and not used as it is")
    return notes


def _import_file(source: Path, out: Path) -> dict[str, Any]:
    """Which format it is in, its content says."""
    if is_word_vector_file(source):
        from weft.tasks.word_transfer import import_vectors

        return import_vectors(source, out)
    from weft.tasks.arpa import import_arpa

    return import_arpa(source, out)


def export_run(path: str | Path, target: str | Path, *, to: str | None = None) -> dict[str, Any]:
    """Write a run as other programs read it, by default in the format that its family has; gives its certificate."""
    if to is not None and to not in FORMATS:
        raise ConfigError(f"--to {to}", expected=f"one of {', '.join(FORMATS)}", advice=did_you_mean(to, FORMATS))
    to = to or _usual_format(Run(path).model_config)
    if to == "arpa":
        from weft.tasks.arpa import export_arpa

        return export_arpa(path, target)
    if to != "hf":
        from weft.tasks.word_transfer import export_vectors

        return export_vectors(Run(path), target, to=to)
    return _export_folder(path, Path(target))


def _usual_format(config: ModelConfig) -> str:
    if isinstance(config, NGramConfig):
        return "arpa"
    return "word2vec" if isinstance(config, Word2VecConfig) else "hf"


def _export_folder(path: str | Path, target: Path) -> dict[str, Any]:
    """A folder that transformers' `Auto…` classes open.

    The first layout that can say the model exactly is taken. The folder is there, proven, or not at all.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise DataError(f"{target} is there already", expected="a new folder", advice="choose another name")
    run = Run(path)
    layout = layout_for(run.model_config)
    weights = dict(run.model.named_parameters())
    exported, generation = _exported(run)
    left_out = layout.losses(run.model_config) + _lacking(exported) + _other_size(exported)
    pictures = None if exported.preprocessing is None else preprocessing_settings(exported.preprocessing)
    with new_folder(target) as beside:
        tokenizers = exported.tokenizer, exported.source_tokenizer
        write_folder(beside, layout, run.model_config, weights, *tokenizers, generation)
        if pictures is not None:
            write_json(beside / PREPROCESSOR, pictures)
        write_text(beside / "README.md", model_card(target, run, layout, left_out))
        certificate = {
            "run": str(path),
            "folder": str(target),
            "weft": __version__,
            "layout": layout.name,
            "architecture": layout.architecture_of(run.model_config),
            "auto_class": layout.auto_class(run.model_config),
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
    """A model that was made for pictures of another size stretches its positions; there, that has to be asked for."""
    made, seen = getattr(exported.config, "image_size", None), exported.preprocessing
    if made is None or seen is None or made == seen.image_size:
        return []
    return [f"pictures of {seen.image_size} for a model of {made} (there: interpolate_pos_encoding=True in each call)"]


def _exported(run: Run) -> tuple[Exported, dict[str, Any]]:
    """A run as it is exported; and, if it translates, what makes transformers' `generate` write as it does."""
    tokenizer = run.tokenizer if run.has_tokenizer else None
    exported = Exported(run.model, run.model_config, tokenizer, preprocessing=_prepared(run))
    if purpose(run.model_config) != "translate":
        return exported, {}
    told: dict[str, Any] = {"num_beams": THOROUGH.beams, "length_penalty": THOROUGH.alpha, "early_stopping": False}
    if tokenizer is None:
        end, pad = run.origin.get("end"), run.origin.get("pad")
        ids = {} if end is None else {"eos_token_id": end, "pad_token_id": end if pad is None else pad}
        return replace(exported, end=end), told | ids
    search = THOROUGH.search(tokenizer, int(cast(Any, run.model_config).start))
    never = {"bad_words_ids": [[token] for token in search.suppress]} if search.suppress else {}
    source = None if run.source_tokenizer is tokenizer else run.source_tokenizer
    return replace(exported, source_tokenizer=source, end=search.end, never=search.suppress), told | never
