"""The command `coco`."""

import io
import sys
from typing import Annotated

import typer

from cocobandits import CocoError, __version__
from cocobandits.cli.bench import bench
from cocobandits.cli.compare import compare
from cocobandits.cli.demo import demo
from cocobandits.cli.report import report
from cocobandits.cli.reproduce import reproduce
from cocobandits.errors import StoppedError

# What shells report for a command that Ctrl-C ended, and for one that was called wrongly.
_STOPPED, _REFUSED = 130, 2

app = typer.Typer(
    name="coco",
    help="Bandits that learn the population their users come from.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(demo)
app.command()(reproduce)
app.command()(report)
app.command()(compare)
app.command()(bench)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"coco {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback on errors.")] = False,
) -> None:
    """Read the options that every verb shares."""
    del version, debug


def main() -> None:
    """Run the command; errors are one sentence and a hint, unless --debug is given."""
    # A stream that cannot encode a tick shows a question mark.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app()
    except CocoError as error:
        if "--debug" in sys.argv:
            raise
        typer.secho(f"Error: {error}", err=True, fg=typer.colors.RED)
        sys.exit(_STOPPED if isinstance(error, StoppedError) else _REFUSED)
