"""Plain values as TOML, which the standard library reads and does not write."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def toml_lines(table: Mapping[str, Any], path: tuple[str, ...] = ()) -> list[str]:
    """The lines of a table; tables inside it are sections."""
    lines = [f"{k} = {toml_value(v)}" for k, v in table.items() if v is not None and not isinstance(v, dict)]
    for name, inner in table.items():
        if isinstance(inner, dict):
            lines += ["", f"[{'.'.join((*path, name))}]", *toml_lines(inner, (*path, name))]
    return lines


def toml_value(value: Any) -> str:
    """One value, on one line."""
    if isinstance(value, list):
        return f"[{', '.join(toml_value(item) for item in value)}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {toml_value(v)}" for k, v in value.items() if v is not None) + "}"
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "inf", -math.inf: "-inf"}.get(value, "nan")
    if isinstance(value, str):  # a JSON string is a TOML basic string, but for the one control character
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)
