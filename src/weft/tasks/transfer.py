"""Models from Hugging Face into a run directory, and runs out into a Hugging Face folder, with a proof."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

from weft import __version__
from weft.checkpoints import FORMAT, RunDirectory
from weft.checkpoints.files import new_folder, write_json, write_tensors, write_text
from weft.checkpoints.hugging_face import HuggingFaceFolder, fetch, is_remote_name, write_folder
from weft.errors import ConfigError, DataError, UnsupportedError
from weft.models import GPTConfig, Layout, layout_for
from weft.tasks.certificate import certify
from weft.tasks.run import Run


def import_model(source: str | Path, out: str | Path) -> dict[str, Any]:
    """Make a run directory of a Hugging Face folder, or of `owner/name` on its hub; says what was found.

    The run is there whole or not at all: everything is read and checked before anything is written.
    """
    RunDirectory(out).check_free()
    path = fetch(str(source)) if is_remote_name(str(source)) else Path(source)
    if not path.is_dir():
        raise DataError(
            f"there is no folder {source}",
            expected="a Hugging Face folder, or owner/name as the hub writes it",
            advice="a model that is not on this computer has two words: openai-community/gpt2",
        )
    run = Run(path)
    if run.folder is None:
        run.directory.read_config()  # says so if it is no run either
        raise DataError(f"{source} is a run of Weft already", expected="a Hugging Face folder")
    if not isinstance(run.model_config, GPTConfig):
        raise UnsupportedError(
            f"{source} is a {run.model_config.kind}: only models that write can be imported as runs yet",
            advice="in Python, weft.load opens the folder as it is",
        )
    folder, model = run.folder, run.model
    weights: dict[str, Tensor] = dict(model.named_parameters())
    with new_folder(Path(out)) as beside:
        about = {"format": FORMAT, "task": "generate", "model": run.model_config.to_dict()}
        origin = {"layout": folder.layout.name, "source": str(source), "weft": __version__}
        write_json(beside / "config.json", about | {"origin": origin})
        if folder.has_tokenizer:
            run.tokenizer.save(beside / "tokenizer.json")
        write_tensors(beside / "model.safetensors", weights)
        write_text(beside / "README.md", _imported_readme(Path(out), str(source), folder.layout))
    return {
        "run": str(out),
        "source": str(source),
        "layout": folder.layout.name,
        "parameters": sum(p.numel() for p in weights.values()),
        "tokenizer": run.tokenizer.kind if folder.has_tokenizer else None,
        "vocab_size": getattr(run.model_config, "vocab_size", None),
        "max_length": getattr(run.model_config, "max_length", None),
        "notes": _import_notes(folder),
    }


def _import_notes(folder: HuggingFaceFolder) -> list[str]:
    notes = []
    if folder.narrowed:
        notes.append(f"the weights were {folder.narrowed} and are now float32")
    if not folder.has_tokenizer:
        notes.append("there is no tokenizer: the model reads and writes ids only")
    return notes


def export_run(path: str | Path, target: str | Path, *, to: str = "hf") -> dict[str, Any]:
    """Write a run as a folder that `AutoModelForCausalLM` and `AutoTokenizer` open; gives its certificate.

    The first layout that can say the model exactly is taken. The folder is there, proven, or not at all.
    """
    if to != "hf":
        raise ConfigError(f"--to {to}", expected="hf: a folder for Hugging Face's transformers")
    target = Path(target)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise DataError(f"{target} is there already", expected="a new folder", advice="choose another name")
    run = Run(path)
    layout = layout_for(run.model_config)
    weights = dict(run.model.named_parameters())
    tokenizer = run.tokenizer if run.has_tokenizer else None
    with new_folder(target) as beside:
        write_folder(beside, layout, run.model_config, weights, tokenizer)
        write_text(beside / "README.md", _model_card(target, run, layout))
        certificate = {
            "run": str(path),
            "folder": str(target),
            "weft": __version__,
            "layout": layout.name,
            "architecture": layout.architecture,
            "parameters": sum(p.numel() for p in weights.values()),
            "left_out": layout.losses(run.model_config),
            **certify(run.model, tokenizer, HuggingFaceFolder(beside)),
        }
        write_json(beside / "certificate.json", certificate)
    return certificate


def _imported_readme(path: Path, source: str, layout: Layout) -> str:
    return f"""# {path.name}

A model imported by Weft from `{source}`, where it is written as {layout.name}. Its sizes are in `config.json`.

    weft generate {path} "Once upon a time"     # let it write
    weft evaluate {path} book.txt               # measure it on a text

It was not trained here, so there is nothing to resume.
"""


def _model_card(target: Path, run: Run, layout: Layout) -> str:
    config = run.model_config
    size = f"{config.depth} layers of width {config.width}" if isinstance(config, GPTConfig) else config.kind
    tokenizer = f'\n    tokenizer = AutoTokenizer.from_pretrained("{target}")' if run.has_tokenizer else ""
    return f"""---
library_name: transformers
pipeline_tag: text-generation
---
# {target.name}

A language model made with Weft: {size}, written in the layout of {layout.name}. `certificate.json` says how
exactly this folder gives the same numbers as the run it was made from.

    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained("{target}"){tokenizer}
"""
