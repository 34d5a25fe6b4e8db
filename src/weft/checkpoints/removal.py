"""Removing a run for good: only what is surely one, and never under the feet of a process that trains it."""

from __future__ import annotations

import os
import shutil
from contextlib import nullcontext
from pathlib import Path

from weft.checkpoints.status import RunStatus, is_locked, is_surely_run, run_status
from weft.errors import DataError


def check_removable(path: str | Path) -> RunStatus:
    """The run that would go, or a `DataError` that says why nothing will be removed."""
    path = Path(path)
    if path.is_symlink():
        raise DataError(f"{path} is a link", expected="the directory of a run", advice=f"it leads to {path.resolve()}")
    if not path.is_dir():
        what = "is not a directory" if path.exists() else "does not exist"
        raise DataError(f"{path} {what}", expected="the directory of a run", advice="`weft runs` lists them")
    if not is_surely_run(path):
        raise DataError(
            f"{path} is not recognisably a run of Weft: nothing was removed",
            expected="a config.json with a format number and a task",
            advice="if it is yours and you want it gone, remove it by hand",
        )
    if is_locked(path):
        raise DataError(f"a process is training {path}: nothing was removed", advice="wait for it, or stop it first")
    return run_status(path)


def remove_run(path: str | Path) -> RunStatus:
    """Remove it and say what it was. It loses its name first, so that nothing half removed looks like a run."""
    from weft.checkpoints.run_directory import RunDirectory

    status = check_removable(path)
    path = Path(path).resolve()  # `.` and `..` have no name of their own
    doomed = path.with_name(f".{path.name}.{os.getpid()}.old")
    try:
        # Windows does not rename a folder with an open file in it; elsewhere nobody may begin meanwhile
        with nullcontext() if os.name == "nt" else RunDirectory(path).locked():
            path.rename(doomed)
    except OSError as error:
        raise DataError(
            f"cannot remove {path}: {error.strerror}", advice="it is untouched; check the rights of its folder"
        ) from None
    try:
        shutil.rmtree(doomed)
    except OSError as error:
        raise DataError(f"cannot remove all of {path}: {error.strerror}", advice=f"the rest is in {doomed}") from None
    return status
