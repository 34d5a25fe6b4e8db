"""Attention as a page that answers to mouse and keys: every layer and head, every token, and the numbers behind them.

What draws it are scripts and a style of their own (attention.js and its neighbours, attention.css); here stands what
they are given.
"""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from importlib.resources import files

from weft.analysis.view import AttentionView
from weft.pages import page, table
from weft.report.attention_data import image_data, view_data, weights_data


@dataclass(frozen=True)
class Section:
    """A part of a page. `style` and `script` are the same for all of them: a page with several needs them once."""

    html: str
    style: str
    script: str


def attention_page(view: AttentionView) -> str:
    """One file that stands alone: the weights, the image and all that draws them are inside."""
    section = attention_section(view, "attention")
    style = f"body {{ max-width: 78rem; }}\n{section.style}"
    return page(f"Attention: {view.title}", section.html, style=style, script=section.script)


def attention_section(view: AttentionView, ident: str, *, level: int = 2) -> Section:
    """The same for a page of one's own. `ident` is unlike any other on that page, headings begin at `level`."""
    name = html.escape(ident, quote=True)
    facts = "".join(f"<div><dt>{html.escape(k)}</dt><dd>{html.escape(v)}</dd></div>" for k, v in _facts(view).items())
    data = [_data("view", safe_json({**view_data(view), "level": level}), "application/json")]
    data += [_data(key, text) for key, text in weights_data(view).items()]
    if view.image is not None:
        data.append(_data("image", image_data(view.image)))
    title = html.escape(f"Attention: {view.title}", quote=True)
    without = f"<noscript><p>The maps are drawn by a script; this is a list of them.</p>{_list(view)}</noscript>"
    body = (
        f'<section class="attention" id="{name}" aria-label="{title}"><dl class="facts">{facts}</dl>\n'
        f'<div class="app">{without}</div>\n{"".join(data)}</section>'
    )
    code = "\n".join(_text(f"attention{part}.js") for part in ("_drawing", "_weights", "_overview", ""))
    return Section(body, _text("attention.css"), f"(() => {{\n{code}}})();\n")


def safe_json(value: object) -> str:
    """JSON that may stand inside a script: nothing in it ends the script or begins a comment."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _facts(view: AttentionView) -> dict[str, str]:
    return {"model": view.family, **view.facts}


def _list(view: AttentionView) -> str:
    heads = ("layer", "part", "heads", "asking", "answering")
    return table(heads, [(m.name, m.part, *m.weights.shape) for m in view.maps])


def _data(key: str, text: str, kind: str = "text/plain") -> str:
    return f'<script type="{kind}" data-of="{html.escape(key, quote=True)}">{text}</script>\n'


def _text(name: str) -> str:
    return files("weft.report").joinpath(name).read_text(encoding="utf-8")
