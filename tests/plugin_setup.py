"""Plugins in tests: what a test loads or defines is gone after it."""

import contextlib
import os
import re
import sys
from pathlib import Path

from weft import plugins
from weft.models import Converter
from weft.registry import Registry

GUIDES = Path(__file__).resolve().parent.parent / "docs" / "guides"
NAMED = re.compile(r"^```python\n(# (\w+\.py)\n.*?)^```$", re.DOTALL | re.MULTILINE)


@contextlib.contextmanager
def registries_as_they_were():
    """What is registered inside the block is not there after it, and no plugin is loaded."""
    menus = [*Registry.all, Converter.registry]
    before = [dict(menu) for menu in menus]
    loaded, told = dict(plugins.LOADED), os.environ.get(plugins.VARIABLE)
    try:
        yield
    finally:
        for menu, entries in zip(menus, before, strict=True):
            for kind in set(menu) - set(entries):
                del menu[kind]
        for name in set(plugins.LOADED) - set(loaded):
            sys.modules.pop(plugins.LOADED.pop(name).module, None)
        os.environ.pop(plugins.VARIABLE, None)
        if told is not None:
            os.environ[plugins.VARIABLE] = told


def put_plugins(page, folder):
    """The files that a page shows whole, by the name in their first line."""
    for body, name in NAMED.findall(page.read_text(encoding="utf-8")):
        (folder / name).write_text(body, encoding="utf-8")
