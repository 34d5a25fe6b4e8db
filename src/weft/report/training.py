"""The report of a run: what it is and how good, what was chosen and why, its data, how it went, what it does.

It is made of the files of the run directory alone, so that it can be made again at any time. A part that cannot be
made says so in its place: no page is worth a finished training.
"""

from __future__ import annotations

import html
import logging
from collections.abc import Callable
from pathlib import Path

from weft.checkpoints import RunDirectory
from weft.checkpoints.files import write_json, write_text
from weft.errors import WeftError
from weft.pages import page
from weft.report.attention import Section
from weft.report.choices import choices
from weft.report.cost import cost
from weft.report.curves import curves
from weft.report.data import data
from weft.report.examples import examples
from weft.report.inside import inside
from weft.report.judged import judged
from weft.report.run_files import RunFiles
from weft.report.settings import commands, settings
from weft.report.summary import summary
from weft.tasks.examples import EXAMPLES_FILE, collect_examples, is_current
from weft.tasks.run import Run

log = logging.getLogger(__name__)
REPORT_FILE = "report.html"

STYLE = """
.lead { font-size: 1.2rem; margin: .2rem 0 1rem; } .soft { color: var(--soft); }
nav ul { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); gap: 1rem; }
.tile { background: var(--raised); border-radius: .5rem; padding: .8rem 1rem; }
.tile .value { font-size: 2rem; font-weight: 600; font-variant-numeric: tabular-nums; }
.tile .soft { display: block; font-size: .85rem; }
.text { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--raised); padding: .6rem 1rem; margin: .3rem 0;
border-radius: .3rem; } figcaption { color: var(--soft); } h3 { margin: 1.5rem 0 .3rem; }
.good { color: var(--good); white-space: nowrap; } .bad { color: var(--warn); white-space: nowrap; }
.warnings li { color: var(--warn); } .problem { border-left: 4px solid var(--warn); padding-left: 1rem; }
ul.images { list-style: none; padding: 0; display: grid; gap: 1rem;
grid-template-columns: repeat(auto-fill, minmax(8rem, 1fr)); }
.images img { width: 6rem; height: 6rem; object-fit: contain; image-rendering: pixelated; display: block;
background: #000; } .images li { font-size: .9rem; }
.command { display: grid; grid-template-columns: 14rem 1fr; gap: 0 1rem; align-items: baseline; }
.command pre { margin: .2rem 0; overflow-x: auto; padding: .3rem .6rem; border-radius: .3rem;
background: var(--raised); }
@media (max-width: 40rem) { .command { grid-template-columns: 1fr; } }
details { margin: .4rem 0; } .wide { margin: .6rem 0; }
"""

Make = Callable[[RunFiles], str] | Callable[[RunFiles], Section]
SECTIONS: tuple[tuple[str, str, Make], ...] = (
    ("choices", "What was chosen, and why", choices),
    ("data", "The data", data),
    ("curves", "How it went", curves),
    ("cost", "What it costs", cost),
    ("judged", "How good it is, in detail", judged),
    ("examples", "What it does", examples),
    ("inside", "Inside", inside),
    ("commands", "What to do with it now", commands),
    ("settings", "All settings", settings),
)


def training_report(run: Path) -> str:
    """The page as text, from the files of the run directory."""
    files = RunFiles.read(run)
    first = _part("summary", summary, files)
    made = [(ident, title, _part(ident, make, files)) for ident, title, make in SECTIONS]
    made = [(ident, title, part) for ident, title, part in made if part.html]
    links = "".join(f'<li><a href="#{ident}">{html.escape(title)}</a></li>' for ident, title, _ in made)
    body = f'{first.html}<nav aria-label="On this page"><ul>{links}</ul></nav>\n' + "".join(
        f'<section id="{ident}"><h2>{html.escape(title)}</h2>\n{part.html}</section>\n' for ident, title, part in made
    )
    style = STYLE + "".join(part.style for _, _, part in made)
    script = "".join(part.script for _, _, part in made)
    return page(files.path.name or str(files.path), body, style=style, script=script)


def _part(name: str, make: Make, files: RunFiles) -> Section:
    """One part of the page; what goes wrong in it is shown in its place."""
    try:
        made = make(files)
        return made if isinstance(made, Section) else Section(made, "", "")
    except Exception as error:
        log.warning("the part %r of the report of %s cannot be made: %s", name, files.path, error, exc_info=True)
        told = str(error) if isinstance(error, WeftError) else f"{type(error).__name__}: {error}"
        return Section(f'<p class="problem">This part cannot be shown: {html.escape(told)}</p>\n', "", "")


def write_report(run: str | Path) -> Path | None:
    """`report.html` of a run, with examples that are made if there are none of its weights yet; gives its path.

    What cannot be made is told in the page, and if there can be no page at all, in the log (None): a finished training
    does not fail for it. Only a directory that is no run is refused.
    """
    path = RunDirectory.open(run).path
    try:
        return made_report(path)
    except Exception as error:
        log.warning("there is no report of %s: %s", path, error, exc_info=True)
        return None


def made_report(path: Path) -> Path:
    """The same, and whatever goes wrong is raised."""
    _make_examples(path)
    write_text(path / REPORT_FILE, training_report(path))
    return path / REPORT_FILE


def _make_examples(path: Path) -> None:
    """Those of other weights, from before it was trained further, are made again; so are those with a problem."""
    opened = Run(path)
    if opened.is_imported or not opened.directory.model_file.exists():
        return
    known = RunFiles.read(path).examples
    if not known or known.get("problems") or not is_current(opened, known):
        write_json(path / EXAMPLES_FILE, collect_examples(opened))
