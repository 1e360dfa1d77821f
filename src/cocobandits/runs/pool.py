"""Fills a run folder: computes the tasks that it lacks, in parallel processes of one thread each.

Adding policies, environments or seeds to a run is the same as continuing an interrupted one.
Workers hand results back, and this process stores them, so a worker that ends too early leaves
nothing half done. Each worker has a pipe of its own, which ends with it: the queue that an executor
of the standard library shares would wait forever for the rest of a result that was cut off.
"""

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from cocobandits.errors import CocoError, ConfigurationError, ConflictError, CrashedError
from cocobandits.policies.plain import with_defaults
from cocobandits.runs.info import CellKey, Made, Source, is_same_code
from cocobandits.runs.store import RunFolder

_SECONDS_BETWEEN_CHECKS = 0.1


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
        ConflictError: the folder has results with other settings, and is not refreshed.
        StorageError: a file is damaged.
    """
    known, missing, done, stale, others = folder.made(), [], [], [], []
    for task in tasks:
        mine, found = task.made(source), known.get(task.key)
        if found is None:
            missing.append(task)
        elif changed := _changed(found.identity, mine.identity):
            others.append((task, changed))
        elif is_same_code(found.provenance, mine.provenance):
            done.append(task)
        else:
            stale.append(task)
    if others and not is_refreshed:
        (first, changed), num_further = others[0], len(others) - 1
        further = f", and {num_further} more results too" if num_further else ""
        raise ConflictError(
            f"Expected the same settings as before; got out={str(folder.path)!r}, in which "
            f"{first.key} has other settings ({', '.join(changed)}){further}. Choose another "
            "folder, or replace such results with --refresh."
        )
    stale += [task for task, _ in others]
    todo = sorted(missing + stale if is_refreshed else missing, key=_turn)
    return Plan(todo, len(missing + done + stale) - len(todo), len(stale))


def fill(
    folder: RunFolder,
    todo: list[Task],
    source: Source,
    num_jobs: int,
    check: Callable[[], None] = lambda: None,
) -> Generator[tuple[Task, pa.Table]]:
    """Compute tasks and store each result; pack them when all are there.

    A task that fails does not stop the others. Closing the iterator ends all processes, and so does
    an exception of `check`, which is called several times a second.

    Raises:
        CrashedError: tasks failed, or a process was killed.
        StorageError: a result cannot be written; the remaining tasks are not computed.
    """
    failures: list[str] = []
    left, busy = iter(todo), dict[Any, Task]()

    def give(worker: Connection) -> None:
        task = next(left, None)
        if task is not None:
            worker.send(task)
            busy[worker] = task

    try:
        with _workers(min(num_jobs, len(todo)), source) as workers:
            for each in workers:
                give(each)
            while busy:
                worker: Any
                check()
                for worker in wait(list(busy), _SECONDS_BETWEEN_CHECKS):
                    task, result = busy.pop(worker), worker.recv()
                    give(worker)
                    if isinstance(result, str):
                        failures.append(f"Expected {task.key} to run to its end; got: {result}")
                        continue
                    folder.save(task.key, result, task.made(source))
                    yield task, result
    except (EOFError, ConnectionError):
        raise CrashedError(
            "Expected processes that run to their end; got one that was killed, as when memory "
            "runs out. Run the same command again, with fewer --jobs."
        ) from None
    if failures:
        raise CrashedError("\n".join(failures))
    folder.pack()


@contextmanager
def _workers(num_jobs: int, source: Source) -> Iterator[list[Connection]]:
    """Start processes, each behind a pipe, and end them at once when they are left."""
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in range(num_jobs)]
    processes = [context.Process(target=_serve, args=(end, source)) for _, end in pipes]
    # Started by the first worker otherwise, and it would lift the mask.
    resource_tracker.ensure_running()
    try:
        # Workers inherit the mask: Ctrl-C reaches all processes, and only the first may react.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        for process, (_, end) in zip(processes, pipes, strict=True):
            process.start()
            # Only the worker holds it now, so the pipe ends with the worker.
            end.close()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        yield [worker for worker, _ in pipes]
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        for process, (worker, _) in zip(processes, pipes, strict=True):
            if process.pid is not None:
                process.kill()
                process.join()
            worker.close()


def _serve(first: Connection, source: Source) -> None:
    """Compute one task after another for the process that started this one, and end with it."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
    while True:
        try:
            result = _receive(first).run(source)
        except CocoError as error:
            result = str(error)
        except Exception:
            result = f"\n{traceback.format_exc()}"
        first.send(result)


def _receive(first: Connection) -> Task:
    """Wait for the next task.

    Raises:
        ConfigurationError: this process cannot import one of its classes.
    """
    try:
        task: Task = first.recv()
    except (AttributeError, ImportError) as error:
        raise ConfigurationError(
            f"Expected policies and environments that worker processes can import; got an error: "
            f"{error}. Define their classes in a module of their own, outside of functions and "
            "of `if __name__ == '__main__'`."
        ) from error
    return task


def _changed(found: dict[str, Any], mine: dict[str, Any]) -> list[str]:
    """Name the parts of two identities that differ, and the settings one by one."""
    pairs = [tuple(with_defaults(each) for each in (found, mine))]
    pairs += [tuple(each.pop("settings", {}) for each in pairs[0])]
    return [
        name
        for first, second in pairs
        for name in first | second
        if first.get(name, ...) != second.get(name, ...)
    ]


def _turn(task: Task) -> tuple[int, float]:
    return (task.key.seed if isinstance(task.key, CellKey) else 0), -task.cost
