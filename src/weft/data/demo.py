"""A table that every Python brings along: docstrings of its library, labelled by what they are about.

They are read with `ast`, nothing is imported. The names of the modules are masked in the texts, or the label
could be read off. Other versions of Python have slightly other texts.
"""

from __future__ import annotations

import ast
import re
import sysconfig
import warnings
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from weft.data.split import stratified_split
from weft.data.tables import Table
from weft.errors import ConfigError, DataError, did_you_mean

TOPICS = {  # label: the modules and packages that it stands for
    "archives": ("pathlib", "zipfile", "tarfile", "shutil", "tempfile"),
    "asyncio": ("asyncio",),
    "email": ("email", "mailbox"),
    "importlib": ("importlib", "zipimport", "pkgutil"),
    "inspection": ("inspect", "pydoc", "typing", "traceback"),
    "logging": ("logging",),
    "network": ("http", "wsgiref", "imaplib", "smtplib", "socketserver", "ipaddress", "xmlrpc"),
    "numbers": ("_pydecimal", "decimal", "fractions", "statistics", "random"),
    "tkinter": ("tkinter",),
    "turtle": ("turtle",),
    "unittest": ("unittest", "doctest"),
    "xml": ("xml",),
}
SHORTEST, LONGEST = 30, 600  # characters of a docstring; longer ones are cut at a space
MOST = 300  # texts of one topic
SHARE = 0.2  # held out for the test
FEWEST = 30
MASK = "module"
PARTS = ("train", "test")


def demo_table(part: str = "train") -> Table:
    """Texts and labels of the embedded data, `train` or `test`; the same on every call."""
    if part not in PARTS:
        raise ConfigError(f"part = {part!r}", advice=did_you_mean(part, PARTS))
    texts, labels = _all_texts()
    learn, judge = stratified_split(labels, SHARE, seed=0, groups=texts)
    places = learn if part == "train" else judge
    columns = {"text": [texts[place] for place in places], "label": [labels[place] for place in places]}
    return Table.of_columns(columns, name=f"demo ({part})")


@lru_cache(maxsize=1)
def _all_texts() -> tuple[tuple[str, ...], tuple[str, ...]]:
    root = Path(sysconfig.get_path("stdlib"))
    found: dict[str, set[str]] = {}  # text: the topics where it stands
    for topic, modules in TOPICS.items():
        for module in modules:
            for path in _sources(root, module):
                for text in _docstrings(path):
                    found.setdefault(text, set()).add(topic)
    by_topic: dict[str, list[str]] = {}
    for text, topics in found.items():
        if len(topics) == 1:  # what stands under several topics has no label
            by_topic.setdefault(next(iter(topics)), []).append(text)
    kept = {topic: texts[:MOST] for topic, texts in by_topic.items() if len(texts) >= FEWEST}
    if len(kept) < 2:
        raise DataError("this Python comes without the sources of its library", advice="train on a table of your own")
    rows = [(text, topic) for topic, texts in sorted(kept.items()) for text in texts]
    texts, labels = zip(*rows, strict=True)
    return texts, labels


def _sources(root: Path, module: str) -> list[Path]:
    """The files of a module or a package, without its tests."""
    single = root / f"{module}.py"
    files = [single] if single.exists() else sorted((root / module).rglob("*.py"))
    return [path for path in files if not {"test", "tests"} & set(path.relative_to(root).parts)]


def _docstrings(path: Path) -> Iterator[str]:
    """The docstrings of a file on one line each, masked; in order."""
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for docstring in _documented(tree):
        text = _masked(" ".join(docstring[: 2 * LONGEST].split()))
        if len(text) >= SHORTEST:
            yield text if len(text) <= LONGEST else text[: text.rfind(" ", 0, LONGEST)]


def _documented(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """The docstring of a module, class or function, and of what is defined directly inside."""
    text = ast.get_docstring(node)
    if text:
        yield text
    for inner in node.body:
        if isinstance(inner, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _documented(inner)


_NAMES = sorted(
    {*TOPICS, *(module.strip("_") for modules in TOPICS.values() for module in modules)}, key=len, reverse=True
)
_PATTERN = re.compile("|".join(map(re.escape, _NAMES)), re.IGNORECASE)


def _masked(text: str) -> str:
    """The text with every name of a topic or a module replaced, also inside longer words."""
    return _PATTERN.sub(MASK, text)
