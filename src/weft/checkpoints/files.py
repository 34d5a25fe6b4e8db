"""Writing so that a crash at any instant leaves the old file or the new one, never half of one."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from weft.checkpoints.tensor_file import read_header
from weft.errors import DataError

LARGEST_JSON = 64 << 20  # bytes; ours have a few thousand


def sync_folder(folder: Path) -> None:
    """Make a rename in this folder durable; Windows cannot open folders and needs no such thing."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_file(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """`write` fills a file beside the target, which then takes its name at once."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write(beside)
        sync_file(beside)
        beside.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise DataError(
            f"cannot write {path}: {error.strerror}", advice="free some space or check its rights"
        ) from None
    finally:
        beside.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    write_whole(path, lambda beside: _write_bytes(beside, text.encode()))


def _write_bytes(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def write_json(path: Path, data: Any) -> None:
    write_text(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def write_tensors(path: Path, tensors: dict[str, Tensor], notes: dict[str, str] | None = None) -> None:
    """Tensors that share memory (tied weights) must have been reduced to one name before."""
    plain = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    write_whole(path, lambda beside: save_file(plain, beside, metadata=notes))


def read_json(path: Path) -> Any:
    if path.exists() and not path.is_file():  # a pipe would keep us waiting for ever
        raise DataError(f"{path} is not a file", expected="a JSON file")
    try:
        size = path.stat().st_size
        if size > LARGEST_JSON:
            raise DataError(f"{path} has {size >> 20} MB", expected=f"at most {LARGEST_JSON >> 20}")
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path} is not there") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, or nested without end
        raise DataError(f"{path} is not valid JSON: {error}") from None


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a log of JSON; one that is half written does not count, and no file is no lines."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    found = []
    for line in text.split("\n")[:-1]:
        try:
            found.append(json.loads(line))
        except ValueError:  # a crash cut it off, and the next one was written behind it
            continue
    return [line for line in found if isinstance(line, dict)]


def read_tensors(path: Path) -> dict[str, Tensor]:
    """All tensors of a safetensors file; they may lie in the file itself until they are touched."""
    read_header(path)
    try:
        return load_file(path)
    except FileNotFoundError:
        raise DataError(f"{path} is not there") from None
    except (SafetensorError, ValueError) as error:
        raise DataError(f"{path} is not a sound safetensors file: {error}") from None


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A folder beside the target that takes its name when all went well; otherwise nothing is left behind."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise DataError(f"{target} is there already", expected="a new folder", advice="choose another name")
    target = Path(os.path.abspath(target))
    made = [parent for parent in target.parents if not parent.exists()]
    beside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    done = False
    try:
        beside.mkdir(parents=True)
        yield beside
        sync_folder(beside)
        if target.exists():
            target.rmdir()  # empty, as was checked; Windows renames onto nothing
        beside.rename(target)
        sync_folder(target.parent)
        done = True
    except OSError as error:
        raise DataError(
            f"cannot write {target}: {error.strerror or error}", advice="free some space or check its rights"
        ) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
        for parent in made if not done else ():
            with suppress(OSError):
                parent.rmdir()


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remove_folder(folder: Path) -> None:
    """Under another name first, so that a crash does not leave half a checkpoint that looks whole."""
    doomed = folder.with_name(f".{folder.name}.{os.getpid()}.old")
    folder.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)
