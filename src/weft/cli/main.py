"""The `weft` command. Verbs live in files of their own and import what they need when they run."""

from __future__ import annotations

import io
import logging
import os
import sys
from typing import Annotated

import typer

from weft import __version__
from weft.cli import (
    attention,
    check,
    classify,
    compare,
    doctor,
    embed,
    fill,
    generate,
    inspect,
    runs,
    similar,
    tag,
    theory,
    tokens,
    tour,
    train,
    transfer,
    translate,
)
from weft.cli.plugin_verbs import add_verbs
from weft.cli.several import SeveralFiles
from weft.errors import WeftError
from weft.plugins import load_all

app = typer.Typer(
    name="weft",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(cls=SeveralFiles)(train.train)
app.command()(train.resume)
app.command()(generate.generate)
app.command()(fill.fill)
app.command()(classify.classify)
app.command()(tag.tag)
app.command()(translate.translate)
app.command()(embed.embed)
app.command()(similar.similar)
app.command()(similar.analogy)
app.command()(train.evaluate)
app.command(cls=SeveralFiles)(compare.compare)
app.command()(inspect.inspect)
app.command()(attention.attention)
app.command("import")(transfer.import_)
app.command()(transfer.export)
app.command()(tokens.tokens)
app.command(cls=SeveralFiles)(check.check)
app.command(cls=theory.OptionalFile)(theory.theory)
app.command()(runs.runs)
app.command()(doctor.doctor)
app.command()(tour.tour)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"weft {__version__}")
        raise typer.Exit


@app.callback()
def weft(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show a full traceback on errors.")] = False,
    plugin: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE.py", help="A file with kinds, families or tasks of your own; for every command."),
    ] = None,
) -> None:
    """Train, run and look inside a Transformer on your own data, on your own computer.

    Example:  weft train book.txt --minutes 5
    """


def _taken(option: str) -> list[str]:
    """The values of an option that every verb has, wherever it stands; they are taken out of the command's words."""
    found, rest, words = [], [], iter(sys.argv[1:])
    for word in words:
        if word == option and (value := next(words, None)) is not None:
            found.append(value)
        elif word.startswith(option + "="):
            found.append(word.partition("=")[2])
        else:
            rest.append(word)
    sys.argv[1:] = rest
    return found


class _Warnings(logging.Handler):
    """Shows warnings on stderr, each once."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.shown: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        if (text := record.getMessage()) not in self.shown:
            self.shown.add(text)
            typer.echo(f"Warning: {text}", err=True)


PLUGIN_WARNINGS = _Warnings()


def main() -> None:
    """Entry point: errors are shown in one to three lines, without a traceback."""
    for stream in (sys.stdout, sys.stderr):  # a terminal or pipe without our letters shows "?" for them
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if "--debug" in sys.argv[1:]:  # wherever it stands
        sys.argv.remove("--debug")
        os.environ["WEFT_DEBUG"] = "1"
    plugins = _taken("--plugin")
    logging.getLogger("weft").addHandler(logging.NullHandler())  # the verbs say it themselves
    PLUGIN_WARNINGS.shown.clear()
    logging.getLogger("weft.plugins").addHandler(PLUGIN_WARNINGS)  # but of plugins nobody else speaks
    try:
        load_all(plugins)
        add_verbs(app)
        sys.exit(app(standalone_mode=False))
    except (typer.Abort, KeyboardInterrupt):
        typer.echo("weft: stopped", err=True)
        sys.exit(130)
    except WeftError as error:
        if os.environ.get("WEFT_DEBUG"):
            raise
        typer.echo(f"weft: {error}", err=True)
        sys.exit(error.exit_code)
    except Exception as error:
        # typer's own errors on wrong words; the class is not public, its two methods are
        if not hasattr(error, "format_message") or os.environ.get("WEFT_DEBUG"):
            raise
        if message := error.format_message():  # empty when bare `weft` has shown its help
            told = (
                "\nthe verb of a task from a plugin needs --plugin FILE.py"
                if message.startswith("No such command") and "Did you mean" not in message
                else ""
            )
            typer.echo(f"weft: {message}{told}", err=True)
        sys.exit(2)
