"""Options that take several files: `--validation a.en a.de` as well as `--validation a.en --validation a.de`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from typer.core import TyperCommand, TyperOption

from weft.tasks.names import task_names

SEVERAL = ("--validation", "--test")


class SeveralFiles(TyperCommand):
    """A command whose `SEVERAL` take all the files that stand behind them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Say the option again before each further file, then go on as usual."""
        options = [option for option in self.params if isinstance(option, TyperOption) and not option.is_flag]
        return super().parse_args(ctx, list(repeated(args, {name for option in options for name in option.opts})))


def repeated(words: Sequence[str], valued: Collection[str]) -> Iterator[str]:
    """The words with `SEVERAL` before each of their files; `valued` are the options that take a word.

    Only once there are data: `weft train --test t.csv train.csv` learns from train.csv.
    """
    collecting, is_value, has_data = "", False, False
    for place, word in enumerate(words):
        if word == "--" and not is_value:
            yield from words[place:]
            return
        if is_value:
            is_value = False
        elif word.startswith("-") and word != "-":
            name, equals, _ = word.partition("=")
            is_value = name in valued and not equals
            collecting = name if name in SEVERAL and has_data else ""
        elif collecting:
            yield collecting
        else:
            has_data = has_data or word not in task_names()
        yield word
