"""`coco report`: figures and page from the records of a run, without simulating."""

from pathlib import Path
from typing import Annotated

import typer

from cocobandits.cli.extras import needs_experiments


def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    beside: Annotated[
        Path | None,
        typer.Option(help="Another run, whose further policies and environments are shown too."),
    ] = None,
) -> None:
    """Rebuild the figures and the page of a finished run from its records.

    Example: coco report runs/coids --beside runs/paper

    Nothing is written to the run beside it. Cells of both have to agree, since both runs met the
    same users; seeds that only one of them has are left out.
    """
    needs_experiments()
    from cocobandits.experiments.report import write_report  # noqa: PLC0415 - needs the extra

    typer.echo(f"Report: {write_report(folder, beside)}")
