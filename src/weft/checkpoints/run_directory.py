"""The directory of a run: what it is, how it went, and how to go on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from weft.checkpoints.files import read_json, read_tensors, write_json, write_tensors, write_text
from weft.checkpoints.lock import try_lock
from weft.errors import DataError
from weft.plugins import check_plugins, plugins_of

FORMAT = 1


class RunDirectory:
    """Paths and files of one run. Nothing in it is overwritten by another run, nothing is half written."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config_file = self.path / "config.json"
        self.model_file = self.path / "model.safetensors"
        self.tokenizer_file = self.path / "tokenizer.json"
        self.source_tokenizer_file = self.path / "source_tokenizer.json"  # of what is read, where it is another
        self.metrics_file = self.path / "metrics.jsonl"
        self.timing_file = self.path / "timing.jsonl"
        self.events_file = self.path / "events.jsonl"
        self.checkpoints = self.path / "checkpoints"

    def __repr__(self) -> str:
        return f"RunDirectory({str(self.path)!r})"

    @classmethod
    def create(cls, path: str | Path) -> RunDirectory:
        """A new, empty run directory; an existing one is never touched."""
        run = cls(path)
        run.check_free()
        try:
            run.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"cannot create {path}: {error.strerror}", advice="choose another --out") from None
        return run

    def check_free(self) -> None:
        """Refuse a path that is taken or cannot be a directory, before any work is done for it."""
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise DataError(f"{self.path} is there already", expected="a new directory", advice="choose another --out")
        above = next(parent for parent in self.path.absolute().parents if parent.exists())
        if not above.is_dir() or not os.access(above, os.W_OK):
            raise DataError(
                f"cannot create {self.path}: {above} is no directory to write in", advice="choose another --out"
            )

    @classmethod
    def next_free(cls, parent: Path, stem: str) -> Path:
        """`runs/generate-book-1`, or the next number that is free."""
        number = 1
        while (parent / f"{stem}-{number}").exists():
            number += 1
        return parent / f"{stem}-{number}"

    @classmethod
    def open(cls, path: str | Path) -> RunDirectory:
        """An existing run; says what is wrong if it is none."""
        run = cls(path)
        if not run.path.is_dir():
            raise DataError(f"there is no run {path}", advice="`weft runs` lists them")
        if not run.config_file.is_file():
            raise DataError(f"{path} is not a run: it has no config.json", advice="`weft runs` lists the runs")
        return run

    def write_config(self, config: dict[str, Any]) -> None:
        needed = plugins_of(config)
        write_json(self.config_file, {"format": FORMAT, **config, **({"plugins": needed} if needed else {})})

    def read_config(self) -> dict[str, Any]:
        """The settings of the run; a run of another format is refused with what to do."""
        config = read_json(self.config_file)
        found = config.pop("format", None) if isinstance(config, dict) else None
        if found != FORMAT:
            raise DataError(
                f"{self.config_file} has format {found!r}",
                expected=f"format {FORMAT}",
                advice="it was written by another version of Weft: use that one",
            )
        check_plugins(config.pop("plugins", None), self.path)
        return dict(config)

    def write_model(self, tensors: dict[str, Any]) -> None:
        write_tensors(self.model_file, tensors)

    def read_model(self) -> dict[str, Any]:
        return read_tensors(self.model_file)

    def write_file(self, name: str, text: str) -> None:
        write_text(self.path / name, text)

    def write_json(self, name: str, data: Any) -> None:
        write_json(self.path / name, data)

    def events(self) -> list[dict[str, Any]]:
        """Decisions that were taken by the clock, in order; a half-written last line does not count."""
        if not self.events_file.exists():
            return []
        lines = self.events_file.read_text(encoding="utf-8").split("\n")
        return [json.loads(line) for line in lines[:-1] if line]

    def add_event(self, event: dict[str, Any]) -> None:
        """Recorded for good before it takes effect, so that a resume takes the same decision."""
        with self.events_file.open("ab") as file:
            size = file.tell()
            whole = self.events_file.read_bytes()[:size].rfind(b"\n") + 1
            file.truncate(whole)
            file.write(json.dumps(event).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One process at a time; the lock dies with its process, however that dies."""
        with (self.path / ".lock").open("a+") as file:
            if not try_lock(file):
                raise DataError(
                    f"another process is working in {self.path}", advice="wait for it, or stop it, then resume"
                )
            yield
