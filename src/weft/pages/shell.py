"""A whole page: light and dark, usable by keyboard, with everything it needs inside."""

from __future__ import annotations

import html

STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --soft: #555; --ground: #fff; --raised: #f4f5f7; --grid: #8884;
--accent: #1d5fbf; --good: #00795a; --warn: #a84300; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --soft: #b0b0b0; --ground: #16181c; --raised: #22252b;
--accent: #7db2ff; --good: #3fc79a; --warn: #ff9a56; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: var(--ink);
background: var(--ground); }
a { color: var(--accent); } h2 { margin-top: 2rem; }
svg { max-width: 100%; height: auto; } svg text { fill: currentColor; font-size: 12px; }
table { border-collapse: collapse; } caption { text-align: left; font-weight: 600; }
td, th { padding: .2rem .9rem .2rem 0; text-align: left; vertical-align: top; overflow-wrap: break-word; }
th { font-weight: 600; border-bottom: 1px solid var(--grid); }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; } td.number { white-space: nowrap; }
th { vertical-align: bottom; }
.best td { font-weight: 600; } svg.bar { width: 100%; max-width: 27rem; }
ul.key { list-style: none; padding: 0; margin: 0; display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; }
ul.key svg { width: 28px; height: 12px; margin-right: .4rem; }
.beside { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(22rem, 100%), 1fr)); gap: 0 2rem; }
.beside > * { min-width: 0; }
.heat td { text-align: center; font-variant-numeric: tabular-nums; padding: .2rem .5rem;
background: color-mix(in srgb, var(--accent) calc(var(--heat, 0) * 50%), transparent); }
.heat th { border: 0; padding: .2rem .6rem .2rem 0; } .heat thead th { text-align: center; padding: .2rem .5rem; }
.wide { overflow-x: auto; } summary { cursor: pointer; } figure { margin: 1rem 0; }
a.skip { position: absolute; left: -99rem; } a.skip:focus { position: static; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
"""


def page(title: str, body: str, *, style: str = "", script: str = "") -> str:
    """The page as text: `body` is HTML, `title` is not; `style` and `script` come after those that all pages have."""
    name = html.escape(title)
    code = f"<script>{script}</script>\n" if script else ""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{name}</title><link rel="icon" href="data:,"><style>{STYLE}{style}</style></head><body>
<a class="skip" href="#main">To the content</a>
<main id="main">
<h1>{name}</h1>
{body}
</main>
{code}</body></html>
"""
