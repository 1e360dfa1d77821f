"""Runs the cells of an experiment in parallel processes, one thread each.

Each process takes one cell after another and stores it itself, so what a process leaves behind is
whole cells whenever it ends. A process ends when there is no more to do, when it is told to, or
when the one that started it is gone.
"""

import multiprocessing
import os
import queue
import signal
import traceback
from collections.abc import Iterator, Sequence
from multiprocessing.process import BaseProcess
from typing import Any, NamedTuple

from cocobandits.environments.registry import build_environment
from cocobandits.errors import CocoError, CrashedError
from cocobandits.experiments import density
from cocobandits.experiments.cells import Cell, run_cell
from cocobandits.experiments.folder import RunFolder
from cocobandits.experiments.presets import Experiment

_POLL_SECONDS = 0.5
_PARTICLE_POLICIES = ("coids", "npm-ts", "gids")
DENSITIES = Cell("mixture, one by one", density.POLICY, 0)


class Event(NamedTuple):
    """How a cell is getting on; it is finished once its result is stored."""

    cell: Cell
    worker: int
    steps: int
    num_steps: int
    regret: float
    is_finished: bool


def cells_of(experiment: Experiment) -> list[Cell]:
    """List all cells, in the order of the records."""
    return [
        Cell(environment, policy, seed)
        for environment in experiment.environments
        for policy in experiment.policies_for(environment)
        for seed in experiment.seeds
    ]


def tasks_of(experiment: Experiment) -> list[Cell]:
    """List what there is to compute, seed by seed and the longest first."""
    tasks = sorted(cells_of(experiment), key=lambda cell: (cell.seed, -expected_cost(cell)))
    has_figure = experiment.scale.is_reproduction and "mixture" in experiment.environments
    if has_figure and DENSITIES.policy in experiment.policies:
        tasks.append(DENSITIES)
    return tasks


def num_steps_of(task: Cell) -> int:
    """Count the interactions of a task."""
    return _environment_of(task).recruitment.num_steps


def expected_cost(task: Cell) -> float:
    """Guess the relative time of a task, for the order of tasks and the time left."""
    plan = _environment_of(task).recruitment
    # Moves of particles go over all users so far; other policies look at one user at a time.
    per_step = 1.0 + 0.1 * plan.num_users if task.policy in _PARTICLE_POLICIES else 1.0
    return plan.num_steps * per_step


def is_done(folder: RunFolder, task: Cell) -> bool:
    """Tell whether a task left its result in the folder."""
    return folder.has_densities() if task == DENSITIES else folder.has(task)


def run(folder: RunFolder, tasks: list[Cell], num_jobs: int) -> Iterator[Event]:
    """Compute tasks, and tell about each step; closing the iterator ends all processes.

    A cell that fails keeps no other from running.

    Raises:
        CrashedError: cells failed, or a process was killed.
    """
    context = multiprocessing.get_context("spawn")
    inbox, outbox = context.Queue(), context.Queue()
    for task in tasks:
        inbox.put(task)
    num_workers = min(num_jobs, len(tasks))
    for _ in range(num_workers):
        inbox.put(None)
    job = (folder, inbox, outbox, os.getpid())
    workers = [
        context.Process(target=_work, args=(number, *job), daemon=True)
        for number in range(num_workers)
    ]
    try:
        for worker in workers:
            worker.start()
        yield from _events(outbox, workers, len(tasks))
    finally:
        # What nobody took would keep this process from ending.
        inbox.cancel_join_thread()
        for worker in workers:
            if worker.is_alive():
                worker.terminate()
        for worker in workers:
            if worker.pid is not None:
                worker.join()


def _events(outbox: Any, workers: Sequence[BaseProcess], num_left: int) -> Iterator[Event]:
    failures = []
    while num_left:
        try:
            message = outbox.get(timeout=_POLL_SECONDS)
        except queue.Empty:
            dead = [worker for worker in workers if worker.exitcode not in (None, 0)]
            if dead:
                raise CrashedError(
                    f"Expected processes that run to their end; got exit code {dead[0].exitcode}, "
                    "as when memory runs out. Try fewer --jobs, and --resume."
                ) from None
            continue
        if isinstance(message, str):
            failures.append(message)
            num_left -= 1
            continue
        num_left -= message.is_finished
        yield message
    if failures:
        raise CrashedError("\n".join(failures))


def _work(number: int, folder: RunFolder, inbox: Any, outbox: Any, parent: int) -> None:
    # Ctrl-C reaches every process of a terminal; the first one decides what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while (task := inbox.get()) is not None:
        num_steps = num_steps_of(task)

        def on_step(
            steps: int, regret: float, task: Cell = task, num_steps: int = num_steps
        ) -> None:
            if os.getppid() != parent:
                os._exit(1)  # nobody is left to report to
            outbox.put(Event(task, number, steps, num_steps, regret, False))

        try:
            regret = _compute(task, folder, on_step)
        except CocoError as error:
            outbox.put(f"Expected {task} to run to its end; got this: {error}")
            continue
        except Exception:
            outbox.put(f"Expected {task} to run to its end; got this:\n{traceback.format_exc()}")
            continue
        outbox.put(Event(task, number, num_steps, num_steps, regret, True))


def _compute(task: Cell, folder: RunFolder, on_step: Any) -> float:
    """Run a task, store its result, and return its regret."""
    if task == DENSITIES:
        folder.store_densities(density.run_density(folder.experiment, on_step))
        return 0.0
    result = run_cell(task, folder.experiment, on_step)
    folder.store(task, result)
    return float(result.records["regret"].to_numpy().sum())


def _environment_of(task: Cell) -> Any:
    return density.one_by_one() if task == DENSITIES else build_environment(task.environment)
