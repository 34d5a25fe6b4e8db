"""What can be chosen and set, known without torch: names, presets, fields with their types, defaults and bounds.

`index.json` holds it. `python tests/make_index.py` writes it from the real classes, and `tests/test_index.py` fails
when it is out of date. From it come stand-ins of the config classes: they have the fields of the real ones and refuse
what is unknown, ill-typed or out of bounds in the same words, by the same code. What is wrong only together
with other values is left to the real ones, which judge everything again.
"""

from __future__ import annotations

import difflib
import functools
import json
import sys
import types
from collections.abc import Iterable
from dataclasses import field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any, Literal, Union

from weft.config import Between, Choice, Config, fit
from weft.errors import ConfigError, did_you_mean
from weft.plugins import GROUP, LOADED
from weft.registry import Registry

FILE = Path(__file__).with_name("index.json")
HOMES = ("blocks", "models", "tasks", "text", "training")
PLAIN = {"int": int, "float": float, "bool": bool, "str": str, "None": type(None)}


def is_enough() -> bool:
    """Whether the index knows all there is, and is quicker to ask: no plugin and no new module adds to it, and torch is
    not there yet."""
    plain = "torch" not in sys.modules and not LOADED and not entry_points(group=GROUP)
    return plain and index()["modules"] == modules()


def modules() -> list[str]:
    """The files in which a kind, family, tokenizer or task can be registered."""
    here = FILE.parent
    return sorted(path.relative_to(here).as_posix() for home in HOMES for path in (here / home).rglob("*.py"))


@functools.cache
def index() -> dict[str, Any]:
    """The file."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


@functools.cache
def stand_ins() -> dict[str, Any]:
    """All config classes by name, as the index knows them; registries have their kinds in the same order."""
    made: dict[str, Any] = {}
    for registries in (True, False):
        for name, said in index()["classes"].items():
            if ("kinds" in said) is registries:
                _make(name, made)
    return made


def _make(name: str, made: dict[str, Any]) -> Any:
    if name not in made:
        said = index()["classes"][name]
        base = _make(said["registry"], made) if "registry" in said else Choice if "kinds" in said else Config
        options = {"kind": said["kind"], "aliases": said["aliases"]} if "kind" in said else {}
        made[name] = types.new_class(name, (base,), options, functools.partial(_fill, said, made))
        if "kinds" in said:
            Registry.all.pop()  # it lists what can be registered, and stand-ins cannot
    return made[name]


def _fill(said: dict[str, Any], made: dict[str, Any], body: dict[str, Any]) -> None:
    """What stands in the class: fields with their types and defaults."""
    body["__module__"] = __name__
    if "several" in said:
        body["several"] = said["several"]
    hints = body["__annotations__"] = {}
    for name, about in said.get("fields", {}).items():
        hints[name] = hint = _hint(about["type"], made)
        if "default" in about:
            body[name] = field(default_factory=functools.partial(fit, about["default"], hint, name))


def _hint(said: Any, made: dict[str, Any]) -> Any:
    """A type as the file spells it."""
    if isinstance(said, str):
        return PLAIN[said]
    word, inner = next(iter(said.items()))
    if word == "config":
        return _make(inner, made)
    if word == "one":
        return Literal[tuple(inner)]
    if word == "each":
        return tuple[_hint(inner, made), ...]  # type: ignore[misc]
    if word == "number":
        return Annotated[_hint(inner, made), Between(*said["between"])]
    items = tuple(_hint(item, made) for item in inner)
    return Union[items] if word == "any" else tuple[items]  # noqa: UP007


# -- names ------------------------------------------------------------------------------------


def preset(name: str) -> tuple[str, dict[str, Any]]:
    """Family and fields of a named size, as `weft.models.preset` gives them."""
    families, known = index()["classes"]["ModelConfig"]["kinds"], index()["presets"]
    if name in families:
        return name, {}
    check_model_name(name, families, known)
    family, fields = known[name]
    return family, dict(fields)


def check_model_name(name: str, families: Any, presets: Any) -> None:
    """Refuse what is neither a family nor a named size."""
    if name not in families and name not in presets:
        raise ConfigError(f"unknown model {name!r}", advice=did_you_mean(name, [*families, *presets]))


def check_inspected_name(name: str, families: Any, presets: Any) -> None:
    """Refuse what is not even nearly a model, nor anything else that can be looked at."""
    if name not in families and name not in presets and not difflib.get_close_matches(name, [*families, *presets]):
        known = ", ".join([*families, *(p for p in presets if not p.endswith("gram"))])
        raise ConfigError(f"{name!r} is no run, no recipe and no model", expected=f"one of these models: {known}")


def by_id(word: str, known: Iterable[str]) -> str:
    """The id that was meant: t7 and 7 are T7; an unknown one is refused with the nearest."""
    ids = list(known)
    wanted = word.strip().upper()
    wanted = wanted if wanted.startswith("T") else f"T{wanted}"
    if wanted in ids:
        return wanted
    numbers = [int(id[1:]) for id in ids]
    if wanted[1:].isdecimal():
        nearest = f"T{min(numbers, key=lambda known: abs(known - int(wanted[1:])))}"
    else:
        nearest = next(iter(difflib.get_close_matches(wanted, ids, n=1)), ids[0])
    raise ConfigError(
        f"there is no claim {word!r}",
        expected=f"T{min(numbers)} … T{max(numbers)}",
        advice=f"did you mean {nearest!r}?",
    )
