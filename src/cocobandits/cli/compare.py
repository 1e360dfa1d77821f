"""`coco compare`: all systems on all environments, in parallel, resumable; ends with a page."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cocobandits.cli.extras import needs_experiments
from cocobandits.cli.running import num_seeds, run_experiment


def compare(  # noqa: PLR0913, PLR0917 - one parameter per option
    quick: Annotated[
        bool, typer.Option("--quick", help="Two seeds, coarser model: a glance, for trying out.")
    ] = False,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env", help="An environment, or stress or studies for four; repeat for more."
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            help="A policy, or a variant of one: mtts-fitted, kmtl-ucb-independent, "
            "kmtl-ucb-contexts, kmtl-ucb-own, robustagg-0.2 or robustagg-0; repeat for more.",
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="Seeds 0 to N-1 (default: 10, with --quick 2).")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Parallel processes (default: one per core).")
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder of the run, or with --show of a finished one.")
    ] = Path("runs/compare"),
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on with an interrupted run, or with more seeds."),
    ] = False,
    show: Annotated[
        bool, typer.Option("--show", help="Write the page of a finished run again; run nothing.")
    ] = False,
    beside: Annotated[
        Path | None,
        typer.Option(
            help="Folder of a finished comparison: only the policies asked for and oracle-ts are "
            "run, and ranked with all in it; seeds and environments are its own unless given."
        ),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(help="File of the page (default: report/comparison.md in the folder)."),
    ] = None,
) -> None:
    """Run our policies, every system of the paper's Table 1 and the oracle, and rank them.

    Example: coco compare --quick --env mixture --env partial --seeds 2

    `coids`, `oracle-ts` and `ind-ts` always take part, in this run or in the one beside it: others
    are compared with the first, and regrets are shown as shares of the last one's. Ctrl-C keeps all
    finished cells; the same command with --resume goes on. With --show only --out,
    --beside and --page count.

    Rank a policy without running all others again:
    coco compare --policy hierts --beside runs/compare --out runs/hierts
    """
    needs_experiments()
    from cocobandits.experiments import presets  # noqa: PLC0415 - heavy, and needs the extra
    from cocobandits.experiments.comparison import (  # noqa: PLC0415
        OURS,
        YARDSTICK,
        check_compared,
        check_fit,
        check_places,
        read_comparison,
    )
    from cocobandits.experiments.comparison_page import write_comparison  # noqa: PLC0415

    console = Console()
    if not show:
        asked = num_seeds(seeds, out, resume)
        wanted = list(policy or presets.COMPARED)
        if beside is None:
            wanted += [OURS, YARDSTICK]
        else:
            check_places(out, beside)
            first = read_comparison(beside)
            asked, env = asked or len(first.seeds), env or list(first.environments)
        experiment = presets.Experiment.declare(
            presets.comparison(quick), env or list(presets.COMPARED_ENVIRONMENTS), wanted, asked
        )
        if beside is not None:
            # What does not fit is told before the run, not after.
            names = experiment.seeds, experiment.scale.name, experiment.environments
            check_fit(first, beside, *names)
            check_compared({*first.policies, *experiment.policies}, beside)
        run_experiment(console, experiment, out, jobs, resume)
    written = write_comparison(out, beside, page)
    console.print(f"Comparison: {written}", soft_wrap=True, markup=False)
