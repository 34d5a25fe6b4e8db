"""The public names are a list that changes on purpose: docs/reference.md.

`python tests/test_public_names.py` renews the page from the docstrings.
"""

import importlib
import inspect
import typing
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference.md"
MODULES = [
    "weft",
    "weft.blocks",
    "weft.text",
    "weft.data",
    "weft.models",
    "weft.objectives",
    "weft.comparison",
    "weft.checkpoints",
    "weft.cost",
    "weft.training",
    "weft.analysis",
    "weft.tasks",
    "weft.report",
    "weft.config",
    "weft.weights",
    "weft.errors",
]


def public_names(module_name):
    module = importlib.import_module(module_name)
    if hasattr(module, "__all__"):
        return sorted(module.__all__, key=str.lower)
    own = {n: v for n, v in vars(module).items() if getattr(v, "__module__", None) == module_name and n[0] != "_"}
    return sorted((n for n, v in own.items() if inspect.isclass(v) or inspect.isfunction(v)), key=str.lower)


def summary(thing):
    """The first sentence of the docstring."""
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return f"the value `{thing!r}`"
    doc = inspect.getdoc(thing) or ""
    return " ".join(doc.split("\n\n")[0].split()).replace("|", "\\|")


def page():
    lines = ["# Public names", "", "Made from the docstrings by `tests/test_public_names.py`.", ""]
    for name in MODULES:
        module = importlib.import_module(name)
        lines += [f"## `{name}`", "", "| name | what it is |", "|---|---|"]
        lines += [f"| `{n}` | {summary(getattr(module, n))} |" for n in public_names(name)]
        lines.append("")
    return "\n".join(lines)


def test_the_page_lists_what_there_is():
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python tests/test_public_names.py`"


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_is_documented(name):
    module = importlib.import_module(name)
    for public in public_names(name):
        thing = getattr(module, public)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert thing.__module__.startswith("weft"), public
            doc = thing.__dict__.get("__doc__") if inspect.isclass(thing) else thing.__doc__
            assert doc and not doc.startswith(f"{public}("), f"{name}.{public} has no docstring"


def test_lazy_names_resolve():
    import weft

    for public in weft.__all__:
        assert getattr(weft, public) is not None
    assert set(weft.__all__) <= set(dir(weft))
    with pytest.raises(AttributeError, match="no attribute 'atention'"):
        weft.atention  # noqa: B018
    assert typing.TYPE_CHECKING is False


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
