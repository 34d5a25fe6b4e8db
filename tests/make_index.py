"""Writes src/weft/index.json: what can be chosen and set, for answers that do not wait for torch.

python tests/make_index.py           after a family, kind, field, preset, task or claim has changed
"""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from weft import config as settings  # noqa: E402
from weft.config import Choice, Config  # noqa: E402
from weft.index import FILE, PLAIN, modules  # noqa: E402
from weft.models import ModelConfig  # noqa: E402
from weft.models.presets import presets  # noqa: E402
from weft.tasks.names import task_names  # noqa: E402
from weft.tasks.task import Task, task_of, variants  # noqa: E402
from weft.text import TokenizerConfig  # noqa: E402
from weft.theory import claims  # noqa: E402
from weft.training import TrainingConfig  # noqa: E402

NAMES = ("demo", "x.txt", "x.md")  # whose task does not depend on what the file holds


def type_of(hint: Any, classes: dict[str, Any]) -> Any:
    """A type as the file spells it; the classes that it needs are added."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        bounds = inner[1]
        return {"number": type_of(inner[0], classes), "between": [bounds.low, bounds.high, bounds.open]}
    if origin in (Union, types.UnionType):
        return {"any": [type_of(option, classes) for option in inner]}
    if origin is Literal:
        return {"one": list(inner)}
    if origin is tuple:
        if inner[-1] is ...:
            return {"each": type_of(inner[0], classes)}
        return {"list": [type_of(item, classes) for item in inner]}
    if isinstance(hint, type) and issubclass(hint, Config):
        add(hint, classes)
        return {"config": hint.__name__}
    return next(word for word, plain in PLAIN.items() if plain is hint)


def add(cls: type[Config], classes: dict[str, Any]) -> None:
    """A class with all that it needs."""
    if cls.__name__ in classes:
        return
    said = classes[cls.__name__] = {}
    if issubclass(cls, Choice) and Choice in cls.__bases__:
        said["kinds"] = {kind: entry.__name__ for kind, entry in cls.registry.items()}
        if cls.several:
            said["several"] = cls.several
        for entry in cls.registry.values():
            add(entry, classes)
        return
    if issubclass(cls, Choice):
        root = next(base for base in cls.__mro__ if Choice in base.__bases__)
        add(root, classes)
        said["registry"], said["kind"] = root.__name__, cls.__dict__["kind"]
        said["aliases"] = [alias for alias, kind in cls.registry.aliases.items() if kind == cls.kind]
    said["fields"] = {}
    for name, hint in settings._hints(cls).items():
        said["fields"][name] = {"type": type_of(hint, classes)}
        default = settings._default(cls, name)
        if default is not settings.MISSING:
            said["fields"][name]["default"] = settings._plain(default)


def plain(fields: Any) -> dict[str, Any]:
    return {name: settings._plain(value) for name, value in fields.items()}


def about(task: Task, classes: dict[str, Any]) -> dict[str, Any]:
    """What a task asks of its settings."""
    for cls in (task.data, task.objective):
        if cls is not None:
            add(cls, classes)
    one = len(task.capabilities) == 1 or task.tokenizer is None
    return {
        "turn": task.turn,
        "claims": type(task).claims is not Task.claims,
        "family": task.family,
        "families": {
            kind: plain(ModelConfig.registry[kind].learns[task.capability(kind)].head) for kind in task.families
        },
        "tokenizers": ([task.tokenizer] if task.tokenizer else []) if one else list(TokenizerConfig.registry),
        "data": task.data.__name__,
        "found": list(task.data.found),
        "columns": list(task.data.columns),
        "objective": task.objective.__name__ if task.objective else None,
    }


def make() -> str:
    """The text of the file."""
    classes: dict[str, Any] = {}
    for cls in (ModelConfig, TokenizerConfig, TrainingConfig):
        add(cls, classes)
    tasks = {name: [about(task, classes) for task in variants(name)] for name in task_names()}
    found = {
        "classes": classes,
        "presets": {name: [family, plain(fields)] for name, (family, fields) in presets().items()},
        "tasks": tasks,
        "told": {Path(name).suffix or name: task_of([name]) for name in NAMES},
        "claims": list(claims()),
        "modules": modules(),
    }
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(FILE.read_text(encoding="utf-8") != make())
    FILE.write_text(make(), encoding="utf-8")
