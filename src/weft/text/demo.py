"""Two megabytes of real English that every Python brings along: its language reference and its docstrings.

The docstrings are read with `ast`, nothing is imported. Other versions of Python have slightly other texts.
"""

from __future__ import annotations

import ast
import gc
import itertools
import os
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path
from pydoc_data import topics

from weft.errors import DataError

LENGTH = 2_000_000
SHORTEST = 80
DENSITY = 0.07  # a file with fewer docstrings than this is not worth the time to parse
SKIPPED = {"test", "tests", "idle_test", "site-packages", "dist-packages", "idlelib", "lib2to3", "pydoc_data"}


def demo_text(length: int | None = None) -> str:
    """The embedded corpus: about two million characters, the same on every call; or the first `length` of them."""
    length = LENGTH if length is None else min(length, LENGTH)
    collecting = gc.isenabled()
    gc.disable()  # syntax trees are many small objects; looking for garbage among them takes half of the time
    try:
        text = "\n\n".join(_first(itertools.chain(_reference(), _docstrings()), length)) + "\n"
    finally:
        if collecting:
            gc.enable()
    if len(text) < length // 10:
        raise DataError("this Python comes without its documentation", advice="train on a text file of your own")
    if len(text) > length:
        text = text[: text.rindex("\n\n", 0, length)] + "\n"
    return text


def _first(paragraphs: Iterator[str], length: int) -> list[str]:
    """Different paragraphs, until together they are longer than this."""
    found: dict[str, None] = {}
    so_far = 0
    for paragraph in paragraphs:
        if so_far > length:
            break
        so_far += 0 if paragraph in found else len(paragraph)
        found[paragraph] = None
    return list(found)


def _reference() -> Iterator[str]:
    """The chapters of the language reference, by name."""
    for name in sorted(topics.topics):
        yield topics.topics[name].strip()


def _docstrings() -> Iterator[str]:
    """The longer docstrings of the standard library, file by file in the order of their names."""
    for path in _sources(Path(sysconfig.get_path("stdlib"))):
        source = path.read_bytes()
        quoted = sum(len(part) for part in source.split(b'"""')[1::2] if len(part) >= SHORTEST)
        if quoted < DENSITY * len(source):
            continue
        try:
            with warnings.catch_warnings(action="ignore"):
                tree = ast.parse(source)
        except (SyntaxError, ValueError):
            continue
        yield from _documented(tree)


def _sources(root: Path) -> Iterator[Path]:
    for base, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in SKIPPED and name[0] not in "._")
        yield from (Path(base, name) for name in sorted(names) if name.endswith(".py"))


def _documented(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """The docstring of a module, class or function, and of what is defined directly inside."""
    text = ast.get_docstring(node, clean=True)
    if text and len(text.strip()) >= SHORTEST:
        yield text.strip()
    for inner in node.body:
        if isinstance(inner, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _documented(inner)
