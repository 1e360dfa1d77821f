"""`coco report`: figures and page from the records of a run, without simulating."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cocobandits.cli.extras import needs_experiments
from cocobandits.cli.running import show_answer


def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    beside: Annotated[
        Path | None,
        typer.Option(help="Another run, whose further policies and environments are shown too."),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(help="File of the Markdown page (default: report/reproduction.md)."),
    ] = None,
) -> None:
    """Rebuild the figures and the page of a finished run from its records, without simulating.

    Example: coco report runs/coids --beside runs/paper

    Nothing is written to the other run. Cells that both runs have must agree, since both met the
    same users; seeds that only one of them has are left out.
    """
    needs_experiments()
    from cocobandits.experiments.report import write_report  # noqa: PLC0415 - needs the extra

    show_answer(Console(), write_report(folder, beside, markdown))
