"""The end of a report: all settings, and the exact commands to go on with."""

from __future__ import annotations

import html
import shlex
from typing import Any

from weft.models import ModelConfig
from weft.pages import table
from weft.report.run_files import RunFiles
from weft.tasks.task import find_use
from weft.tasks.use import can_be_exported


def commands(files: RunFiles) -> str:
    """To use, measure, resume, look inside, export: to be copied into a terminal."""
    config, path = ModelConfig.from_config(files.config["model"]), shlex.quote(str(files.path))
    lines = [
        (find_use(config, files.task)[1].command(path), "use it"),
        (f"weft evaluate {path}", "measure it again"),
    ]
    if files.status.state != "finished":
        lines.append((f"weft resume {path}", "go on, where it was interrupted"))
    elif config.learned_in_steps:
        lines.append((f"weft resume {path} --minutes 5", "train it further"))
    lines.append((f"weft inspect {path}", "look inside"))
    if getattr(config, "attention", None) is not None or getattr(config, "looks", None):
        lines.append((f"weft attention {path} INPUT", "see what looks at what"))
    if can_be_exported(config):
        lines.append((f"weft export {path} DIR", "take it to Hugging Face"))
    lines.append((f"weft runs --report {path}", "make this page again"))
    return "".join(
        f'<div class="command"><span class="soft">{html.escape(why)}</span><pre>{html.escape(line)}</pre></div>\n'
        for line, why in lines
    )


def settings(files: RunFiles) -> str:
    """All of them, by their names in a recipe."""
    rows = [(name, str(value)) for name, value in _flat(files.config)]
    versions = [(name, str(value)) for name, value in files.environment.items()]
    shown = f"<details><summary>All settings</summary>{table(('setting', 'value'), rows)}</details>\n"
    made = f"<details><summary>What it was made with</summary>{table(('what', 'version'), versions)}</details>\n"
    return shown + (made if versions else "")


def _flat(given: dict[str, Any], path: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in given.items():
        found += _flat(value, f"{path}{name}.") if isinstance(value, dict) else [(path + name, value)]
    return found
