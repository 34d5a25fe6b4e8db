"""Count models as ARPA files, out of a run and into one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from weft import __version__
from weft.checkpoints import FORMAT, RunDirectory
from weft.checkpoints.files import new_folder, write_json, write_tensors, write_text, write_whole
from weft.errors import DataError, UnsupportedError
from weft.models import NGramConfig
from weft.models.arpa import END, UNKNOWN, arpa_lines, read_arpa, spelled
from weft.models.ngram import NGram
from weft.models.ngram_smoothing import ImportedConfig
from weft.models.ngram_tables import Tables
from weft.tasks.environment import run_readme
from weft.tasks.purpose import first_use
from weft.tasks.run import Run
from weft.text import Tokenizer
from weft.text.spelling import END as OUR_END
from weft.text.word_level import word_level


def export_arpa(path: str | Path, target: str | Path) -> dict[str, Any]:
    """Write the n-grams of a run as an ARPA file, with its tokenizer beside it; says what was written.

    The file is read again before it gets its name: what it gives back is compared with the model.
    """
    target, run = Path(target), Run(path)
    if not isinstance(run.model_config, NGramConfig):
        raise UnsupportedError(
            f"{path} is a {run.model_config.kind}: it has no n-grams", expected="a count model, from --model 5gram"
        )
    beside = tokenizer_beside(target)
    for file in (target, beside):
        if file.exists():
            raise DataError(f"{file} is there already", expected="a new file", advice="choose another name")
    if not target.parent.is_dir():
        raise DataError(f"there is no folder {target.parent}", expected="a folder to write in")
    model, tokenizer = run.model, run.tokenizer
    assert isinstance(model, NGram)
    words = _words(tokenizer, run.model_config.vocab_size)
    found: dict[str, Any] = {}

    def write(file: Path) -> None:
        with file.open("w", encoding="utf-8", newline="\n") as out:
            out.writelines(arpa_lines(model.tables, words))
        found["difference"] = _difference(model.tables, read_arpa(file, words).tables)

    write_whole(target, write)
    if _is_ours(tokenizer):
        write_text(beside, tokenizer.to_json())
    return {
        "run": str(path),
        "file": str(target),
        "tokenizer": str(beside) if _is_ours(tokenizer) else None,
        "order": run.model_config.order,
        "ngrams": [len(level.tokens) for level in model.tables.levels],
        **found,
    }


def tokenizer_beside(path: Path) -> Path:
    """`book.arpa` has `book.tokenizer.json`."""
    return path.with_name(f"{path.name.removesuffix('.arpa')}.tokenizer.json")


def _is_ours(tokenizer: Tokenizer) -> bool:
    """Else its tokens are words as an ARPA file had them."""
    return tokenizer.end_name == OUR_END


def _words(tokenizer: Tokenizer, size: int) -> list[str]:
    names = tokenizer.names + [""] * (size - tokenizer.vocab_size)
    if _is_ours(tokenizer):
        return spelled(names, tokenizer.end, tokenizer.special.unknown)
    return names


def _difference(ours: Tables, theirs: Tables) -> float:
    """The largest difference of any logarithm of a probability; one that is 0 must be 0."""
    largest = 0.0
    for mine, other in zip(ours.levels, theirs.levels, strict=True):
        if not np.array_equal(mine.tokens, other.tokens) or not np.array_equal(
            mine.probability > 0, other.probability > 0
        ):
            raise DataError("the file does not give the same n-grams back", advice="please report this")
        there = mine.probability > 0
        logs = np.log10(mine.probability[there]) - np.log10(other.probability[there])
        largest = max(largest, float(np.abs(logs).max(initial=0.0)))
    return largest


def import_arpa(path: Path, out: str | Path) -> dict[str, Any]:
    """Make a run of an ARPA file; its tokens are those of the tokenizer beside it, else its words between spaces."""
    RunDirectory(out).check_free()
    beside = tokenizer_beside(path)
    if beside.exists():
        tokenizer = Tokenizer.from_json(beside.read_bytes(), name=str(beside))
        found = read_arpa(path, spelled(tokenizer.names, tokenizer.end, tokenizer.special.unknown))
    else:
        found = read_arpa(path)
        tokenizer = word_level(found.words, end=END, unknown=UNKNOWN)
    order, size = found.tables.order, found.tables.vocab_size
    config = NGramConfig(vocab_size=size, order=order, smoothing=ImportedConfig(), end=found.end)
    model = config.with_tables(found.tables)
    with new_folder(Path(out)) as folder:
        origin = {"layout": "arpa", "source": str(path), "weft": __version__}
        about = {"format": FORMAT, "task": "generate", "model": config.to_dict()}
        write_json(folder / "config.json", about | {"origin": origin})
        tokenizer.save(RunDirectory(folder).tokenizer_file)
        write_tensors(folder / "model.safetensors", model.state_dict())
        use = first_use("generate", out)
        write_text(folder / "README.md", run_readme(Path(out), use, exportable=False))
    return {
        "run": str(out),
        "source": str(path),
        "layout": "arpa",
        "task": "generate",
        "use": "generate",
        "parameters": found.tables.size,
        "tokenizer": tokenizer.kind,
        "vocab_size": size,
        "max_length": order,
        "notes": [] if beside.exists() else ["its tokens are words between spaces; other words are unknown to it"],
    }
