"""Fills a run folder: computes the tasks that it lacks, in parallel processes of one thread each.

Adding policies, environments or seeds to a run is the same as continuing an interrupted one.
Workers hand results back, and this process stores them, so a worker that ends too early leaves
nothing half done. Any `concurrent.futures.Executor` would do.
"""

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import NamedTuple, Protocol

import pyarrow as pa

from cocobandits.errors import CocoError, ConflictError, CrashedError
from cocobandits.runs.format import CellKey, Made
from cocobandits.runs.provenance import Source, is_same_code
from cocobandits.runs.store import RunFolder


class Task(Protocol):
    """A cell, or a further table; goes to another process with all it holds."""

    @property
    def key(self) -> CellKey | str:
        """Where the result belongs in a run."""

    @property
    def cost(self) -> float:
        """The expected relative time."""

    def made(self, source: Source) -> Made:
        """Describe how the result is made."""

    def run(self, source: Source) -> pa.Table:
        """Compute the result."""


class Plan(NamedTuple):
    """The tasks left to compute, seed by seed, the longest first; and how many others there are."""

    todo: list[Task]
    num_done: int
    num_stale: int


def plan(
    folder: RunFolder, tasks: Iterable[Task], source: Source, is_refreshed: bool = False
) -> Plan:
    """Find the tasks whose results are missing, or were made by other code if refreshed.

    Raises:
        ConflictError: the folder has a result with other settings, and is not refreshed.
        StorageError: a file is damaged.
    """
    known, missing, done, stale = folder.made(), [], [], []
    for task in tasks:
        mine, found = task.made(source), known.get(task.key)
        if found is None:
            missing.append(task)
        elif found.identity == mine.identity and is_same_code(found.provenance, mine.provenance):
            done.append(task)
        elif found.identity == mine.identity or is_refreshed:
            stale.append(task)
        else:
            raise ConflictError(
                f"Expected the same settings as before; got out={str(folder.path)!r}, in which "
                f"{task.key} has other settings. Choose another folder, or replace such results "
                "with --refresh."
            )
    todo = sorted(missing + stale if is_refreshed else missing, key=_turn)
    return Plan(todo, len(missing + done + stale) - len(todo), len(stale))


def fill(
    folder: RunFolder, todo: list[Task], source: Source, num_jobs: int
) -> Generator[tuple[Task, pa.Table]]:
    """Compute tasks and store each result; pack them when all are there.

    A task that fails does not stop the others. Closing the iterator ends all processes.

    Raises:
        CrashedError: tasks failed, or a process was killed.
        StorageError: a result cannot be written; the remaining tasks are not computed.
    """
    failures = []
    with _processes(num_jobs) as executor:
        # Workers inherit the mask: Ctrl-C reaches all processes, and only the first may react.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        futures = {executor.submit(task.run, source): task for task in todo}
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        for future in as_completed(futures):
            task = futures.pop(future)
            try:
                table = future.result()
            except BrokenProcessPool:
                raise CrashedError(
                    "Expected processes that run to their end; got one that was killed, as when "
                    "memory runs out. Run the same command again, with fewer --jobs."
                ) from None
            except Exception as error:
                reason = error if isinstance(error, CocoError) else f"\n{traceback.format_exc()}"
                failures.append(f"Expected {task.key} to run to its end; got: {reason}")
                continue
            folder.save(task.key, table, task.made(source))
            yield task, table
    if failures:
        raise CrashedError("\n".join(failures))
    folder.pack()


@contextmanager
def _processes(num_jobs: int) -> Iterator[Executor]:
    """Start processes, and end them at once when they are left."""
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    executor = ProcessPoolExecutor(num_jobs, context, initializer=_follow_parent)
    try:
        yield executor
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
        executor.shutdown(cancel_futures=True)


def _follow_parent() -> None:
    """End this process when the one that started it is gone."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _turn(task: Task) -> tuple[int, float]:
    return (task.key.seed if isinstance(task.key, CellKey) else 0), -task.cost
