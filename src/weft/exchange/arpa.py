"""Count models as ARPA files, out of a run and into one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from weft import __version__
from weft.checkpoints import RunDirectory
from weft.checkpoints.files import new_folder, write_tensors, write_text, write_whole
from weft.errors import DataError, UnsupportedError
from weft.models import LearnsByCounting
from weft.models.ngram.arpa import END, UNKNOWN, arpa_lines, difference, imported_model, read_arpa, spelled
from weft.tasks.environment import run_readme
from weft.tasks.run import Run
from weft.tasks.task import find_use
from weft.text import Tokenizer
from weft.text.spelling import END as OUR_END
from weft.text.word_level import word_level


def export_arpa(path: str | Path, target: str | Path) -> dict[str, Any]:
    """Write the n-grams of a run as an ARPA file, with its tokenizer beside it; says what was written.

    The file is read again before it gets its name: what it gives back is compared with the model.
    """
    target, run = Path(target), Run(path)
    if LearnsByCounting not in run.model_config.provides:
        raise UnsupportedError(
            f"{path} is a {run.model_config.kind}: it has no n-grams", expected="a count model, from --model 5gram"
        )
    beside = tokenizer_beside(target)
    for file in (target, beside):
        if file.exists():
            raise DataError(f"{file} is there already", expected="a new file", advice="choose another name")
    if not target.parent.is_dir():
        raise DataError(f"there is no folder {target.parent}", expected="a folder to write in")
    model: Any = run.model
    tokenizer = run.tokenizer
    words = _words(tokenizer, model.config.vocab_size)
    found: dict[str, Any] = {}

    def write(file: Path) -> None:
        with file.open("w", encoding="utf-8", newline="\n") as out:
            out.writelines(arpa_lines(model.tables, words))
        found["difference"] = difference(model.tables, read_arpa(file, words).tables)

    write_whole(target, write)
    if _is_ours(tokenizer):
        write_text(beside, tokenizer.to_json())
    return {
        "run": str(path),
        "file": str(target),
        "tokenizer": str(beside) if _is_ours(tokenizer) else None,
        "order": model.config.order,
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
    model = imported_model(found)
    config, (task, use) = model.config, find_use(model.config)
    with new_folder(Path(out)) as folder:
        origin = {"converter": "arpa", "source": str(path), "weft": __version__}
        run = RunDirectory(folder)
        run.write_config({"task": task.name, "model": config.to_dict(), "origin": origin})
        tokenizer.save(run.tokenizer_file)
        write_tensors(folder / "model.safetensors", model.state_dict())
        write_text(folder / "README.md", run_readme(Path(out), use.command(out), exportable=False))
    return {
        "run": str(out),
        "source": str(path),
        "converter": "arpa",
        "task": task.name,
        "use": use.name,
        "parameters": found.tables.size,
        "tokenizer": tokenizer.kind,
        "vocab_size": config.vocab_size,
        "max_length": config.order,
        "notes": [] if beside.exists() else ["its tokens are words between spaces; other words are unknown to it"],
    }
