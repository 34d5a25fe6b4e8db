"""What is planned, and the orders by which processes train: all that is written down."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from weft.errors import ConfigError, WeftError
from weft.tasks.recipe import Recipe
from weft.tasks.request import Request


@dataclass(frozen=True)
class Trial:
    """One variant, ready to be trained by a process that knows nothing else.

    fingerprint   of the data; tokenizer: of its tokenizer.json, empty where no text is read
    flops         operations of one step; None where nobody can tell yet
    reason        why it cannot be trained; empty if it can
    """

    name: str
    settings: dict[str, Any]
    request: dict[str, Any] = field(default_factory=dict)
    parameters: int | None = None
    flops: float | None = None
    memory: int | None = None
    fingerprint: str = ""
    tokenizer: str = ""
    reason: str = ""

    def to_request(self, out: Path) -> Request:
        """The request as it was planned, for a folder that may have moved since."""
        fields = dict(self.request)
        for name in ("data", "validation", "test"):
            fields[name] = tuple(fields[name])
        return Request(**fields | {"recipe": Recipe(**fields["recipe"]), "out": str(out)})


@dataclass(frozen=True)
class Plan:
    """All variants in order, and how long one takes: minutes if they are what is given, or seconds as measured."""

    task: str
    orders: list[Trial]
    steps: int
    seconds: float | None
    timed: bool  # whether all are trained for the same time

    def words(self) -> str:
        """How many runs there are, and about how long they take."""
        each = f"{length(self.seconds or 0)}" if self.timed else f"{self.steps:,} steps"
        count = sum(not order.reason for order in self.orders)
        told = f"{count} run{'s' * (count > 1)} of {each}{' each' * (count > 1)}"
        return f"{told}, about {length(count * self.seconds)} in all" if self.seconds and count > 1 else told


def length(seconds: float) -> str:
    """A time in words, with two digits."""
    if seconds < 99.5:
        return f"{seconds:.2g} seconds"
    return f"{seconds / 60:.2g} minutes" if seconds < 5970 else f"{seconds / 3600:.2g} hours"


def plain(request: Request) -> dict[str, Any]:
    """For JSON; what belongs to one process is left out."""
    fields = asdict(replace(request, out=None))
    for name in ("started", "dry_run", "sample"):
        fields.pop(name)
    try:
        return dict(json.loads(json.dumps(fields)))
    except TypeError as error:
        raise ConfigError(f"a setting cannot be written down: {error}", expected="numbers, words or lists") from None


def digest(data: bytes) -> str:
    """What a tokenizer.json is known by."""
    return hashlib.sha256(data).hexdigest()


def reason_of(error: BaseException) -> str:
    """What went wrong, in a few lines at most; what is not ours is named by its kind."""
    if isinstance(error, WeftError):
        return str(error)
    first = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}".rstrip(": ")
