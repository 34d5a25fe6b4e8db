"""Word vectors out into a file of the word2vec format, and from such a file into a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from weft import __version__
from weft.checkpoints import RunDirectory
from weft.checkpoints.files import new_folder, write_tensors, write_text
from weft.checkpoints.word_vector_file import read_word_vectors, write_word_vectors
from weft.errors import ConfigError, DataError
from weft.models import ModelConfig, WordVectorTable, default_for
from weft.tasks.embed.word_list import WordList
from weft.tasks.embed.word_vectors import NearestWords
from weft.tasks.environment import check_fits
from weft.tasks.run import Run
from weft.tasks.task import find_use

LAYOUT = "word2vec"
FORMATS = ("word2vec", "word2vec-binary")


def export_vectors(run: Run, target: str | Path, *, to: str) -> dict[str, Any]:
    """Write the vectors as text, or binary if asked for or if the name ends with .bin; gives what was written."""
    target = Path(target)
    if to not in FORMATS:
        raise ConfigError(f"--to {to} for word vectors", expected=" or ".join(FORMATS))
    if target.exists():
        raise DataError(f"{target} is there already", expected="a new file", advice="choose another name")
    if not target.parent.is_dir():
        raise DataError(f"{target} cannot be written: there is no folder {target.parent}")
    vectors = NearestWords(run)
    binary = to == "word2vec-binary" or target.suffix == ".bin"
    write_word_vectors(target, vectors.words.words, vectors.vectors, binary=binary)
    again = read_word_vectors(target)
    if again.words != vectors.words.words or not np.array_equal(again.vectors, vectors.vectors):
        target.unlink()
        raise DataError(f"{target} was not read again as it was written", advice="check the disk")
    return {
        "run": str(run.directory.path),
        "file": str(target),
        "format": FORMATS[binary],
        "words": len(vectors.words),
        "width": vectors.width,
        "weights": "identical",
    }


def import_vectors(source: Path, out: Path) -> dict[str, Any]:
    """Make a run of a file of word vectors; its second matrix is not in such files, and is zero."""
    found = read_word_vectors(source)
    sizes = {"vocab_size": len(found.words), "width": found.vectors.shape[1]}
    config = ModelConfig.from_config({"kind": default_for(WordVectorTable), **sizes})
    check_fits(2 * found.vectors.size, str(source))
    model, (task, use) = config.skeleton(), find_use(config)
    assert isinstance(model, WordVectorTable)
    vectors = torch.from_numpy(found.vectors)
    weights = {
        name: vectors if p is model.word_vectors else torch.zeros_like(vectors) for name, p in model.named_parameters()
    }
    with new_folder(out) as beside:
        origin = {"converter": LAYOUT, "source": str(source), "weft": __version__}
        RunDirectory(beside).write_config({"task": task.name, "model": config.to_dict(), "origin": origin})
        WordList(found.words, np.zeros(len(found.words), dtype=np.int64)).save(beside)
        write_tensors(beside / "model.safetensors", weights)
        command = use.command(out)
        write_text(beside / "README.md", f"# {out.name}\n\nWord vectors from `{source.name}`.\n\n    {command}\n")
    return {
        "run": str(out),
        "source": str(source),
        "converter": LAYOUT,
        "task": task.name,
        "use": use.name,
        "parameters": found.vectors.size,
        "tokenizer": None,
        "vocab_size": len(found.words),
        "width": found.vectors.shape[1],
        "binary": found.binary,
        "notes": ["such files have no second matrix: training from it begins with zeros there"],
    }
