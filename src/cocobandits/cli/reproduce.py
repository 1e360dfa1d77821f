"""`coco reproduce`: the paper's experiments, in parallel, resumable; ends with a report."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cocobandits.cli.extras import needs_experiments
from cocobandits.cli.running import num_seeds, run_experiment, show_answer


def reproduce(  # noqa: PLR0913, PLR0917 - one parameter per option
    quick: Annotated[
        bool, typer.Option("--quick", help="Four seeds, coarser models: minutes, not hours.")
    ] = False,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env", help="An environment, or `stress` or `studies` for four each; repeat for more."
        ),
    ] = None,
    policy: Annotated[
        list[str] | None, typer.Option("--policy", help="A policy; repeat for more.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="Seeds 0 to N-1 (default: 10, with --quick 4).")
    ] = None,
    nodes: Annotated[
        int | None,
        typer.Option(help="Grid points per arm of the paper's policies (default: 20, quick 8)."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="Population model: auto, log-density or mixture (default: auto, which is the "
            "log-density in the paper's environments; with --quick, mixture for coids)."
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Parallel processes (default: one per core).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run (default: runs/paper or runs/quick).")
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue an interrupted run, or add seeds to it."),
    ] = False,
) -> None:
    """Run the paper's four experiments, and answer whether its claims hold.

    Example: coco reproduce --quick --env mixture --policy gids --policy ind-ts --seeds 3

    `oracle-ts` always takes part: multi-task regret is measured against it. Ctrl-C keeps all
    finished cells; the same command with --resume continues.
    """
    needs_experiments()
    from cocobandits.experiments import presets  # noqa: PLC0415 - heavy, and needs the extra
    from cocobandits.experiments.report import write_report  # noqa: PLC0415

    console = Console()
    scale = presets.scale(quick, nodes, model)  # type: ignore[arg-type]
    place = Path("runs") / scale.name if out is None else out
    asked = num_seeds(seeds, place, resume)
    experiment = presets.Experiment.declare(scale, env, policy, asked)
    run_experiment(console, experiment, place, jobs, resume)
    console.print("Writing the report.")
    show_answer(console, write_report(place))
