"""`coco reproduce`, `coco compare` and `coco report`: compute what is missing, then write pages."""

from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from cocobandits.errors import ConfigurationError, StoppedError
from cocobandits_command import check_requests, leave, note, on_stop

if TYPE_CHECKING:
    from cocobandits.experiments.suites import Suite

_NEEDED = ("jinja2", "matplotlib", "pyarrow")

Quick = Annotated[
    bool, typer.Option("--quick", help="Fewer seeds, coarser models: minutes, not hours.")
]
Environments = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        metavar="NAME",
        help="An environment, or a group of four: stress, studies; repeatable.",
    ),
]
Policies = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        metavar="NAME",
        help="A policy, or a variant of one: coids-log-density, mtts-fitted, "
        "kmtl-ucb-independent, kmtl-ucb-contexts, kmtl-ucb-own, robustagg-0.2 or robustagg-0; "
        "repeatable.",
    ),
]
Seeds = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Seeds 0 to N-1 (default: as in the folder, or else 10; quick 4, compare quick 2).",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(metavar="N", help="Parallel processes (default: one per core).", min=1, max=1024),
]
Refresh = Annotated[
    bool, typer.Option("--refresh", help="Run cells again that other code or settings made.")
]


def reproduce(  # noqa: PLR0913, PLR0917 - one parameter per option
    quick: Quick = False,
    env: Environments = None,
    policy: Policies = None,
    seeds: Seeds = None,
    nodes: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Grid points per arm of the paper's policies (default: 20, quick 8)."
        ),
    ] = None,
    jobs: Jobs = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Folder of the run (default: runs/paper or runs/quick)."
        ),
    ] = None,
    refresh: Refresh = False,
) -> None:
    """Run the paper's four experiments, and answer whether its claims hold.

    Example: coco reproduce --quick --env mixture --policy gids --policy ind-ts --seeds 3

    Computes what the folder does not have yet, so the same command continues an interrupted run,
    and other policies, environments or seeds are added to it. oracle-ts always takes part:
    multi-task regret is relative to it.
    """
    _check_packages()
    from cocobandits.experiments.suites import paper_suite  # noqa: PLC0415 - needs the extra

    folder = out or Path("runs", "quick" if quick else "paper")
    suite = paper_suite(quick, env, policy, _num_seeds(folder, seeds), nodes)
    run_suite(suite, folder, jobs, refresh)
    _report([folder])


def compare(  # noqa: PLR0913, PLR0917 - one parameter per option
    quick: Quick = False,
    env: Environments = None,
    policy: Policies = None,
    seeds: Seeds = None,
    jobs: Jobs = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of the run.")] = Path(
        "runs/compare"
    ),
    refresh: Refresh = False,
) -> None:
    """Run our policies, every system of the paper's Table 1 and the oracle, and rank them.

    Example: coco compare --quick --env mixture --env partial --seeds 2

    Computes what the folder does not have yet: to rank one more policy, name it with --policy and
    the folder of a finished comparison with --out. coids, oracle-ts and ind-ts always take part.
    """
    _check_packages()
    from cocobandits.experiments.suites import compare_suite  # noqa: PLC0415 - needs the extra

    suite = compare_suite(quick, env, policy, _num_seeds(out, seeds))
    run_suite(suite, out, jobs, refresh)
    _report([out])


def report(
    # A list of arguments would show the type of Python.
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDER", hidden=True)],
) -> None:
    """Rebuild figures and pages of runs from their files, without simulating.

    Example: coco report runs/paper runs/models

    FOLDER is the folder of a run; several are shown as one, and pages go to the first. Seeds that
    only some of the policies have are left out.
    """
    _check_packages()
    _report(folders)


def run_suite(suite: "Suite", path: Path, jobs: int | None, is_refreshed: bool) -> None:
    """Compute what is missing of a suite.

    Raises:
        ConflictError: the folder is in use, or holds something else.
        CrashedError: a cell failed, or its process was killed.
        StoppedError: Ctrl-C; finished cells are kept.
        StorageError: the folder cannot be used.
    """
    from cocobandits.cli.progress import follow  # noqa: PLC0415 - needs the extra
    from cocobandits.runs.info import Source, num_cores  # noqa: PLC0415
    from cocobandits.runs.pool import fill, plan  # noqa: PLC0415
    from cocobandits.runs.store import open_folder  # noqa: PLC0415

    num_jobs = jobs or num_cores()
    source, console = Source.here(num_jobs), Console()
    with open_folder(path) as folder:
        planned = plan(folder, [*suite.cells(), *suite.tables()], source, is_refreshed)
        if planned.num_stale and not is_refreshed:
            console.print(
                f"{planned.num_stale} cells were made by other code; --refresh reruns them."
            )
        try:
            on_stop(note)
            with closing(fill(folder, planned.todo, source, num_jobs, check_requests)) as finished:
                follow(console, finished, planned)
        except KeyboardInterrupt:
            raise StoppedError(
                f"Stopped; finished cells are kept in {path}. Run the same command to continue."
            ) from None
        finally:
            on_stop(leave)


def _report(folders: list[Path]) -> None:
    """Write the page that suits the suites of the cells, and print its answer."""
    from cocobandits.experiments.report import write_comparison, write_report  # noqa: PLC0415
    from cocobandits.runs.results import read_results  # noqa: PLC0415

    console, results, place = Console(), read_results(*folders), folders[0] / "report"
    if results.num_left_out:
        console.print(f"Left out: {results.num_left_out} cells of seeds that other policies lack.")
    if {info.suite for info in results.cells.values()} == {"compare"}:
        lines = [f"Comparison: {write_comparison(results, place)}"]
    else:
        written = write_report(results, place)
        lines = [*written.summary, f"Page: {written.page}"]
    for line in lines:
        console.print(line, soft_wrap=True, markup=False, highlight=False)


def _num_seeds(path: Path, asked: int | None) -> int | None:
    """Choose the number of seeds that is asked for, or else that of a finished run.

    A run that was never finished has the first seeds only, so the suite decides there.
    """
    from cocobandits.runs.store import RunFolder  # noqa: PLC0415 - needs the extra

    return RunFolder(path).num_seeds() if asked is None else asked


def _check_packages() -> None:
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"Missing optional dependencies: {', '.join(missing)}. Install them with: "
            "pip install 'cocobandits[experiments]'"
        )
