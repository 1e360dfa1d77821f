"""Fills a run folder: computes the tasks that are missing in it, and keeps all others.

Adding policies, environments or seeds to a run is the same as continuing an interrupted one.
"""

from collections.abc import Generator, Iterable
from contextlib import closing
from typing import NamedTuple

import pyarrow as pa

from cocobandits.errors import ConflictError
from cocobandits.runs.format import CellKey
from cocobandits.runs.pool import Task, compute
from cocobandits.runs.provenance import Source, is_same_code
from cocobandits.runs.store import RunFolder


class Plan(NamedTuple):
    """What is left to compute, the longest first within a seed."""

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
    known, todo, done, num_stale = folder.made(), [], 0, 0
    for task in tasks:
        mine, found = task.made(source), known.get(task.key)
        if found is None:
            todo.append(task)
            continue
        is_other = found.identity != mine.identity
        if is_other and not is_refreshed:
            raise ConflictError(
                f"Expected the same settings as before; got out={str(folder.path)!r}, in which "
                f"{task.key} has other settings. Choose another folder, or replace such results "
                "with --refresh."
            )
        is_stale = is_other or not is_same_code(found.provenance, mine.provenance)
        num_stale += is_stale
        if is_stale and is_refreshed:
            todo.append(task)
        else:
            done += 1
    return Plan(sorted(todo, key=_turn), done, num_stale)


def fill(
    folder: RunFolder, todo: list[Task], source: Source, num_jobs: int
) -> Generator[tuple[Task, pa.Table]]:
    """Compute tasks and store each result; pack them when all are there.

    Raises:
        CrashedError: tasks failed, or a process was killed.
        StorageError: a result cannot be written; the remaining tasks are not computed.
    """
    # Closed at once when a result cannot be stored, so that no process computes in vain.
    with closing(compute(todo, source, num_jobs)) as results:
        for task, table in results:
            folder.save(task.key, table, task.made(source))
            yield task, table
    folder.pack()


def _turn(task: Task) -> tuple[int, float]:
    return (task.key.seed if isinstance(task.key, CellKey) else 0), -task.cost
