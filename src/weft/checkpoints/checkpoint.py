"""One checkpoint is one directory, `step-N`: tensors, state, and a manifest that proves them whole."""

from __future__ import annotations

import logging
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor

from weft.checkpoints.files import digest, read_json, read_tensors, remove_folder, sync_file, sync_folder, write_json
from weft.errors import DataError

log = logging.getLogger(__name__)
NAME = re.compile(r"step-(0|[1-9]\d*)")


@dataclass(frozen=True)
class Checkpoint:
    """Everything that decides how a run goes on: tensors in named groups, and plain values."""

    step: int
    tensors: dict[str, dict[str, Tensor]]  # file stem → name → tensor: model, optimizer, random
    state: dict[str, Any]


def list_checkpoints(folder: Path) -> list[tuple[int, Path]]:
    """(step, path) of the complete ones, oldest first; `step-100.backup` and unfinished ones do not count."""
    if not folder.is_dir():
        return []
    found = [(int(match[1]), path) for path in folder.iterdir() if (match := NAME.fullmatch(path.name))]
    return sorted((step, path) for step, path in found if path.is_dir())


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write beside, sync, rename, sync the folder: there whole or not at all."""
    target = folder / f"step-{checkpoint.step}"
    beside = folder / f".step-{checkpoint.step}.{os.getpid()}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for left_over in folder.glob(".step-*"):
            shutil.rmtree(left_over, ignore_errors=True)
        beside.mkdir()
        for stem, tensors in checkpoint.tensors.items():
            path = beside / f"{stem}.safetensors"
            save_file({name: t.detach().cpu().contiguous() for name, t in tensors.items()}, path)
            sync_file(path)
        write_json(beside / "state.json", {"step": checkpoint.step, **checkpoint.state})
        files = sorted(path.name for path in beside.iterdir())
        write_json(beside / "manifest.json", {name: digest(beside / name) for name in files})
        sync_folder(beside)
        if target.exists():  # the same step again, after a resume: the same bytes
            remove_folder(target)
        beside.rename(target)
        sync_folder(folder)
    except OSError as error:
        raise DataError(
            f"cannot save checkpoint {target}: {error.strerror}",
            advice="the earlier checkpoint still stands; free some space, then resume",
        ) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return target


def load_checkpoint(path: Path) -> Checkpoint:
    """Read and verify one; `DataError` names the file that is missing, truncated or altered."""
    manifest = read_json(path / "manifest.json")
    tensors: dict[str, dict[str, Tensor]] = {}
    for name, expected in manifest.items():
        file = path / name
        if Path(name).name != name or not file.is_file():
            raise DataError(f"{file} is not there")
        if digest(file) != expected:
            raise DataError(f"{file} is damaged: its bytes are not those that were written")
        if file.suffix == ".safetensors":
            tensors[file.stem] = read_tensors(file)
    state = read_json(path / "state.json")
    return Checkpoint(step=state.pop("step"), tensors=tensors, state=state)


def load_newest(folder: Path) -> Checkpoint | None:
    """The newest sound checkpoint; damaged ones are named in the log and passed over."""
    refused: list[str] = []
    for _, path in reversed(list_checkpoints(folder)):
        try:
            return load_checkpoint(path)
        except DataError as error:
            refused.append(str(error))
            log.warning("checkpoint %s refused: %s", path.name, error)
    if refused:
        raise DataError(f"no sound checkpoint in {folder}", expected="one that is whole", advice=refused[0])
    return None


def remove_old(folder: Path, keep: int) -> None:
    """Keep the newest `keep` checkpoints."""
    for _, path in list_checkpoints(folder)[: -keep or None]:
        remove_folder(path)
