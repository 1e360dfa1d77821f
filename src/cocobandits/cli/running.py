"""What `coco reproduce` and `coco compare` share: cells in parallel, with progress, to the end."""

import signal
from pathlib import Path
from typing import TYPE_CHECKING

from cocobandits.errors import ConfigurationError

if TYPE_CHECKING:
    from rich.console import Console

    from cocobandits.experiments.presets import Experiment
    from cocobandits.experiments.report import Written


def run_experiment(
    console: "Console", experiment: "Experiment", place: Path, jobs: int | None, is_resumed: bool
) -> None:
    """Compute what is missing of an experiment, and put all cells together.

    Raises:
        ConfigurationError: fewer than one process.
        ConflictError: the folder holds something else.
        CrashedError: a cell failed, or its process was killed.
        StorageError: the folder cannot be used.
    """
    from cocobandits.cli.progress import show  # noqa: PLC0415 - heavy, and needs the extra
    from cocobandits.experiments import runner  # noqa: PLC0415
    from cocobandits.experiments.folder import RunFolder  # noqa: PLC0415
    from cocobandits.experiments.provenance import num_cores  # noqa: PLC0415

    # A polite request to end is treated like Ctrl-C, also where a shell made background jobs deaf.
    for request in (signal.SIGINT, signal.SIGTERM):
        signal.signal(request, signal.default_int_handler)
    num_jobs = num_cores() if jobs is None else jobs
    if num_jobs < 1:
        raise ConfigurationError(f"Expected at least one process; got jobs={jobs}. Use 1 or more.")
    folder = RunFolder(place, experiment)
    folder.prepare(is_resumed, num_jobs)
    tasks = runner.tasks_of(experiment)
    todo = [task for task in tasks if not runner.is_done(folder, task)]
    show(console, runner.run(folder, todo, num_jobs), todo, len(tasks) - len(todo), folder.path)
    folder.finish(runner.cells_of(experiment))


def num_seeds(seeds: int | None, place: Path, is_resumed: bool) -> int | None:
    """Choose as many seeds as are asked for, or else as the run had that is resumed."""
    from cocobandits.experiments.folder import num_seeds_of  # noqa: PLC0415

    return num_seeds_of(place) if seeds is None and is_resumed else seeds


def show_answer(console: "Console", written: "Written") -> None:
    """Print the answer of a report, and the path of its page."""
    for line in (*written.summary, f"Page: {written.page}"):
        console.print(line, soft_wrap=True, markup=False, highlight=False)
