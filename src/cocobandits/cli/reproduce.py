"""`coco reproduce`: the paper's experiments, in parallel, resumable; ends with a report."""

import signal
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cocobandits.cli.extras import needs_experiments
from cocobandits.errors import ConfigurationError


def reproduce(  # noqa: PLR0913, PLR0917 - one parameter per option
    quick: Annotated[
        bool, typer.Option("--quick", help="Few seeds, coarser model: minutes, not hours.")
    ] = False,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env", help="An environment, or stress or studies for four; repeat for more."
        ),
    ] = None,
    policy: Annotated[
        list[str] | None, typer.Option("--policy", help="A policy; repeat for more.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="Seeds 0 to N-1 [default: 10, with --quick 2].")
    ] = None,
    nodes: Annotated[
        int | None,
        typer.Option(help="Grid points per arm of the paper's policies [default: 20, quick 8]."),
    ] = None,
    model: Annotated[
        str, typer.Option(help="Population model: auto, log-density or mixture.")
    ] = "auto",
    jobs: Annotated[
        int | None, typer.Option(help="Parallel processes [default: one per core].")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run [default: runs/paper or runs/quick].")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted run.")
    ] = False,
) -> None:
    """Run the paper's four experiments, and report what was found.

    Example: coco reproduce --quick --env mixture --policy gids --policy ind-ts --seeds 3

    `oracle-ts` always takes part: multi-task regret is measured against it. Ctrl-C keeps all
    finished cells; the same command with --resume goes on.
    """
    needs_experiments()
    from cocobandits.cli.progress import show  # noqa: PLC0415 - heavy, and needs the extra
    from cocobandits.experiments import presets, runner  # noqa: PLC0415
    from cocobandits.experiments.folder import RunFolder, num_cores  # noqa: PLC0415
    from cocobandits.experiments.report import write_report  # noqa: PLC0415

    # A polite request to end is treated like Ctrl-C, also where a shell made background jobs deaf.
    for request in (signal.SIGINT, signal.SIGTERM):
        signal.signal(request, signal.default_int_handler)
    console = Console()
    scale = presets.scale(quick, nodes, model)  # type: ignore[arg-type]
    experiment = presets.Experiment.declare(scale, env, policy, seeds)
    num_jobs = num_cores() if jobs is None else jobs
    if num_jobs < 1:
        raise ConfigurationError(f"Expected at least one process; got jobs={jobs}. Use 1 or more.")
    folder = RunFolder(Path("runs") / scale.name if out is None else out, experiment)
    folder.prepare(resume, num_jobs)
    tasks = runner.tasks_of(experiment)
    todo = [task for task in tasks if not runner.is_done(folder, task)]
    show(console, runner.run(folder, todo, num_jobs), todo, len(tasks) - len(todo), folder.path)
    folder.finish(runner.cells_of(experiment))
    console.print("Writing the report.")
    console.print(f"Report: {write_report(folder.path)}", soft_wrap=True, markup=False)
