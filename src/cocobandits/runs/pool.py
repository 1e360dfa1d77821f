"""Computes tasks in parallel processes, one thread each.

Any `concurrent.futures.Executor` would do. Results come back to the caller, who stores them, so a
worker that ends too early leaves nothing half done.
"""

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Generator, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Protocol

import pyarrow as pa

from cocobandits.errors import CocoError, CrashedError
from cocobandits.runs.format import CellKey, Made
from cocobandits.runs.provenance import Source


class Task(Protocol):
    """A cell, or a further table; goes to another process with all it holds."""

    @property
    def key(self) -> CellKey | str:
        """Where the result belongs in a run."""

    def made(self, source: Source) -> Made:
        """Describe how the result is made."""

    @property
    def cost(self) -> float:
        """The expected relative time."""

    def run(self, source: Source) -> pa.Table:
        """Compute the result."""


def compute(
    tasks: Iterable[Task], source: Source, num_jobs: int
) -> Generator[tuple[Task, pa.Table]]:
    """Compute tasks, in their order; closing the iterator ends all processes.

    A task that fails does not stop the others.

    Raises:
        CrashedError: tasks failed, or a process was killed.
    """
    context = multiprocessing.get_context("spawn")
    others, failures = set(multiprocessing.active_children()), []
    executor = ProcessPoolExecutor(num_jobs, context, initializer=_follow_parent)
    try:
        # Workers inherit the mask: Ctrl-C reaches all processes, and only the first may react.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        futures = {executor.submit(task.run, source): task for task in tasks}
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
            except CocoError as error:
                failures.append(f"Expected {task.key} to run to its end; got: {error}")
            except Exception:
                failures.append(
                    f"Expected {task.key} to run to its end; got:\n{traceback.format_exc()}"
                )
            else:
                yield task, table
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
        executor.shutdown(cancel_futures=True)
    if failures:
        raise CrashedError("\n".join(failures))


def _follow_parent() -> None:
    """End this process when the one that started it is gone."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
