"""What the model does, in a few examples that were made once with its best weights."""

from __future__ import annotations

import html
from collections.abc import Callable
from typing import Any

from weft.pages import Html, heat_table, table
from weft.report.run_files import RunFiles

Example = dict[str, Any]
PARTS = {"test": "These are from the test data.", "validation": "These were held out."}
GROUPS = {"some": "Some that were not learned from", "mistakes": "Mistakes of which it was surest"}


def examples(files: RunFiles) -> str:
    """Of the kind that the run has; empty if there is none."""
    found, kind = files.examples.get("examples") or [], files.examples.get("kind", "")
    problem = (files.examples.get("problems") or {}).get("examples")
    told = f"<p>No examples could be made: {html.escape(problem)}</p>\n" if problem else ""
    shown = KINDS[kind](found) if kind in KINDS and found else ""
    where = PARTS.get(files.examples.get("measured_on", ""), "")
    return told + _sample(files) + (f'<p class="soft">{where}</p>\n' if where and shown else "") + shown


# -- texts ------------------------------------------------------------------------------------


def _sample(files: RunFiles) -> str:
    """What it wrote on request, before training and after it."""
    sample = files.sample
    if not sample:
        return ""
    prompt = sample.get("prompt", "")
    shown = "".join(
        f"<figure><figcaption>{when} training</figcaption>{_written(prompt, sample[key])}</figure>"
        for key, when in (("before", "Before"), ("after", "After"))
        if key in sample
    )
    return f"<h3>Asked to go on with “{html.escape(prompt)}”</h3>\n{shown}\n"


def _written(prompt: str, text: str) -> str:
    return f'<blockquote class="text"><b>{html.escape(prompt)}</b>{html.escape(text)}</blockquote>'


def _texts(found: list[Example]) -> str:
    shown = []
    for one in found:
        title = "After a beginning from the held-out text (in bold)" if one["prompt"] else "From nothing"
        really = str(one.get("really") or "")
        truth = f'<details><summary>How it really goes on</summary><p class="text">{html.escape(really)}</p></details>'
        written = _written(one["prompt"], one["text"])
        shown.append(f"<figure><figcaption>{title}</figcaption>{written}{truth if really else ''}</figure>")
    return f"<h3>What it writes</h3>\n{''.join(shown)}\n"


def _gaps(found: list[Example]) -> str:
    rows = []
    for one in found:
        told = ", ".join(f"{gap['text'].strip()} {gap['probability']:.0%}" for gap in one["gaps"][0])
        right = one["gaps"][0][0]["text"].strip().lower() == one["really"].lower()
        rows.append((one["text"], told, one["really"], _mark(right)))
    heads = ("a held-out sentence with a gap", "what may stand there", "what does", "")
    return table(heads, rows, caption="Gaps filled in")


def _translations(found: list[Example]) -> str:
    rows = [
        (one["source"], one["translation"], one["really"], _mark(one["translation"] == one["really"])) for one in found
    ]
    heads = ("source", "translation", "what it is in truth", "")
    maps = "".join(_alignment(one) for one in found if one.get("alignment"))
    told = "<h3>What each word looked at</h3>\n" if maps else ""
    return table(heads, rows, caption="Sources that were not learned from") + told + maps


def _alignment(one: Example) -> str:
    """A row for each word that was written, a column for each of the source."""
    links = one["alignment"]
    heads = [word for word, _ in links[0]["looks"]]
    rows = [[share for _, share in link["looks"]] for link in links]
    caption = "Rows were written, columns are the source; in percent"
    shown = heat_table([link["word"] for link in links], heads, rows, caption=caption, words=lambda n: f"{100 * n:.0f}")
    opened = " open" if len(links) <= 12 else ""
    return f"<details{opened}><summary>{html.escape(one['source'])}</summary>{shown}</details>\n"


def _neighbours(found: list[Example]) -> str:
    rows = [(one["word"], ", ".join(f"{word} {near:.2f}" for word, near in one["neighbours"])) for one in found]
    return table(("frequent word", "nearest words, and how near (1 is the same direction)"), rows)


# -- answers ----------------------------------------------------------------------------------


def _answers(found: list[Example]) -> str:
    shown = ""
    for group, title in GROUPS.items():
        rows = [
            (
                " ‖ ".join(one["text"]),
                _label(one["answer"]),
                _percent(one),
                _label(one["truth"]),
                _mark(one.get("right")),
            )
            for one in found
            if one["group"] == group
        ]
        shown += table(("text", "answer", "how sure", "truth", ""), rows, caption=title) + "\n" if rows else ""
    return shown


def _images(found: list[Example]) -> str:
    shown = ""
    for group, title in GROUPS.items():
        cards = "".join(_card(one) for one in found if one["group"] == group)
        shown += f'<h3>{html.escape(title)}</h3><ul class="images">{cards}</ul>\n' if cards else ""
    return shown


def _card(one: Example) -> str:
    answer, truth = _label(one["answer"]), _label(one["truth"])
    told = f"{answer} {_percent(one)}".strip()
    wrong = "" if one.get("right") is not False else f"<br>in truth {html.escape(truth)}"
    image = html.escape(one["image"], quote=True)
    words = html.escape(f"image of {truth}", quote=True)
    return (
        f'<li><img src="{image}" alt="{words}"><span>{html.escape(told)} {_mark(one.get("right"))}{wrong}</span></li>'
    )


def _label(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _percent(one: Example) -> str:
    return "" if one.get("probability") is None else f"{one['probability']:.0%}"


def _mark(right: bool | None) -> Html:
    """Right or wrong, told by more than a colour."""
    if right is None:
        return Html("")
    return Html('<span class="good">✓ right</span>' if right else '<span class="bad">✗ wrong</span>')


KINDS: dict[str, Callable[[list[Example]], str]] = {
    "texts": _texts,
    "gaps": _gaps,
    "translations": _translations,
    "neighbours": _neighbours,
    "answers": _answers,
    "images": _images,
}
