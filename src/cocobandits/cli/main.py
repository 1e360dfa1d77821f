"""The command `coco`."""

import io
import sys
from pathlib import Path
from typing import Annotated

import typer

from cocobandits import CocoError, __version__
from cocobandits.cli.experiments import compare, report, reproduce
from cocobandits.errors import StoppedError

# What shells report for a command that Ctrl-C ended, and for one that was called wrongly.
_STOPPED, _REFUSED = 130, 2

app = typer.Typer(
    name="coco",
    help="Bandits that learn the population their users come from.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.command(short_help="Show the diet example, and why plan 1 comes first.")
def demo(
    policy: Annotated[str, typer.Option(metavar="NAME", help="A policy with beliefs.")] = "gids",
    seed: Annotated[
        int, typer.Option(metavar="N", help="Fixes users, noise and decisions.", min=0)
    ] = 0,
    picture: Annotated[
        Path, typer.Option(metavar="FILE", help="Where the picture goes; .png, .svg or .pdf.")
    ] = Path("runs/demo.png"),
) -> None:
    """Learn who needs which diet plan, and explain why plan 1 is given first to some.

    Example: coco demo --policy npm-ts --seed 3
    """
    from cocobandits.cli.demo import show  # noqa: PLC0415 - reports need no environments

    show(policy, seed, picture)


for verb, summary in (
    (reproduce, "Run the paper's experiments, and judge its claims."),
    (compare, "Run and rank all systems."),
    (report, "Rebuild the pages of stored runs."),
):
    app.command(short_help=summary)(verb)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"coco {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show a traceback on errors; also after a command.")
    ] = False,
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
        app([argument for argument in sys.argv[1:] if argument != "--debug"])
    except CocoError as error:
        if "--debug" in sys.argv:
            raise
        typer.secho(f"Error: {error}", err=True, fg=typer.colors.RED)
        sys.exit(_STOPPED if isinstance(error, StoppedError) else _REFUSED)
