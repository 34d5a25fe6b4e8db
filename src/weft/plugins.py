"""Plugins: files and installed packages that register attention kinds, positions, families, tokenizers and tasks.

    weft train book.txt --plugin topk.py --set model.attention.kind=top-k

A file is named by the user each time; a package names itself by the entry-point group `weft.plugins`. Importing one
runs its code, so nothing that lies in a run directory is taken as a plugin: a run only names those that it needs.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import logging
import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from weft.errors import ConfigError, DataError, WeftError
from weft.registry import Registry

log = logging.getLogger(__name__)
GROUP = "weft.plugins"
MODULES = "weft_plugin_"  # the names of modules that are made of files begin so
VARIABLE = "WEFT_PLUGINS"  # files that processes started by this one load too


@dataclass(frozen=True)
class Plugin:
    """What was loaded: a file with the hash of its content, or an installed package with its version."""

    name: str
    module: str
    file: str = ""
    sha256: str = ""
    version: str = ""

    @property
    def shown(self) -> str:
        """As people name it."""
        return Path(self.file).name if self.file else self.name


LOADED: dict[str, Plugin] = {}


def load_plugin(path: str | Path) -> Plugin:
    """Import a Python file; what it defines registers itself. The same file is imported once."""
    file = Path(path)
    if not file.is_file() or file.suffix != ".py":
        raise ConfigError(f"--plugin {path}", expected="a Python file that exists, such as topk.py")
    file = file.resolve()
    content = file.read_bytes()
    known = LOADED.get(file.stem)
    if known is not None:
        if known.file == str(file):
            return known
        raise ConfigError(f"two plugins are called {file.stem}: {known.file} and {file}", expected="a name for each")
    plugin = Plugin(file.stem, MODULES + file.stem, str(file), hashlib.sha256(content).hexdigest())
    spec = importlib.util.spec_from_file_location(plugin.module, file)
    assert spec is not None and spec.loader is not None
    sys.modules[plugin.module] = module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[plugin.module]
        if isinstance(error, WeftError):
            raise
        raise ConfigError(f"the plugin {path} fails when it is imported: {type(error).__name__}: {error}") from error
    LOADED[file.stem] = plugin
    os.environ[VARIABLE] = os.pathsep.join(one.file for one in LOADED.values() if one.file)
    return plugin


def load_all(paths: Sequence[str] = ()) -> None:
    """What is installed, what the process that started this one has loaded, and these files."""
    load_installed()
    for path in (*filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)), *paths):
        load_plugin(path)


def load_installed() -> None:
    """The plugins of installed packages; one that fails is told and left out."""
    for entry in entry_points(group=GROUP):
        if entry.name in LOADED:
            continue
        try:
            importlib.import_module(entry.module)
        except Exception as error:
            log.warning("the plugin %s fails when it is imported: %s: %s", entry.name, type(error).__name__, error)
            continue
        version = entry.dist.version if entry.dist is not None else ""
        LOADED[entry.name] = Plugin(entry.name, entry.module, version=version)


def with_plugins(command: str) -> str:
    """A command with the files that are loaded now, which it needs too."""
    files = [os.path.relpath(one.file) for one in LOADED.values() if one.file]
    return command + "".join(f" --plugin {shlex.quote(file)}" for file in files)


# -- what a run needs -------------------------------------------------------------------------


def plugins_of(config: Mapping[str, Any]) -> list[dict[str, str]]:
    """The plugins that registered a kind or the task of these settings, as a run's config.json names them."""
    kinds = set(_kinds(config))
    modules = {entry.__module__ for registry in Registry.all for kind, entry in registry.items() if kind in kinds}
    found = [plugin for plugin in LOADED.values() if any(_within(module, plugin.module) for module in modules)]
    return [{"name": one.name, "file": one.shown, "sha256": one.sha256, "version": one.version} for one in found]


def check_plugins(recorded: object, where: object) -> None:
    """Refuse a run whose plugins are not loaded; tell if one has changed since."""
    if recorded is None:
        return
    if not isinstance(recorded, list) or not all(isinstance(one, dict) and "name" in one for one in recorded):
        raise DataError(f"{where}: plugins = {str(recorded)[:60]}", expected="a list of plugins with their names")
    for one in recorded:
        loaded, shown = LOADED.get(str(one["name"])), str(one.get("file") or one["name"])[:60]
        if loaded is None:
            file = shown if one.get("sha256") else ""
            raise DataError(
                f"{where} needs the plugin {shown}, which is not loaded",
                advice=f"add  --plugin {file}" if file else f"install the package that has the plugin {shown}",
            )
        if loaded.sha256 != one.get("sha256", ""):
            log.warning("the plugin %s has changed since %s was written", shown, where)


def _kinds(value: Any) -> Iterator[str]:
    """All words under `kind` and `task` in nested tables."""
    if isinstance(value, Mapping):
        yield from (word for key, word in value.items() if key in ("kind", "task") and isinstance(word, str))
        for below in value.values():
            yield from _kinds(below)
    elif isinstance(value, list | tuple):
        for below in value:
            yield from _kinds(below)


def _within(module: str, plugin: str) -> bool:
    return module == plugin or module.startswith(plugin + ".")
