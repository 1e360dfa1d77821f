"""Records the behaviour of one tree, in two processes, and writes it to a JSON file.

    python -m golden.worker TREE OUT

`compare.py` starts it with a PYTHONPATH that begins with the sources of the tree.
"""

import hashlib
import json
import multiprocessing
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import jax

import cocobandits
from golden.drivers import find_driver
from golden.pages import regenerate
from golden.playing import Outcome, play
from golden.runs import RESUMED, SIMULATED, ResumedRun, SimulatedRun
from golden.scenarios import CLOSED_FORM, LEARNERS, scenarios

_NUM_PROCESSES = 2
Job = Callable[[], list[Outcome]]


def check_source(tree: Path) -> None:
    """Refuse to record another tree than the one that was asked for.

    Raises:
        ImportError: the package comes from elsewhere.
    """
    found, expected = Path(cocobandits.__file__).resolve(), (tree / "src").resolve()
    if not found.is_relative_to(expected):
        raise ImportError(f"Expected cocobandits from {expected}; got {found}. Check PYTHONPATH.")


def record(tree: Path) -> list[Outcome]:
    """Record everything of a tree, the longest jobs first."""
    jobs: list[Job] = [
        *(partial(_play_policies, (policy,)) for policy in LEARNERS),
        *(partial(_resume, run) for run in RESUMED),
        partial(_simulate, SIMULATED),
        partial(_play_policies, CLOSED_FORM),
        partial(_regenerate, tree),
    ]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(_NUM_PROCESSES, context) as pool:
        done = [pool.submit(_work, tree, job) for job in jobs]
        return [outcome for each in done for outcome in each.result()]


def _work(tree: Path, job: Job) -> list[Outcome]:
    """Do a job in this process, and forget what was compiled for it, which takes memory."""
    check_source(tree)
    outcomes = job()
    jax.clear_caches()
    return outcomes


def _play_policies(policies: tuple[str, ...]) -> list[Outcome]:
    driver = find_driver()
    chosen = (each for each in scenarios() if each.policy in policies)
    return [_guarded(each.id, partial(play, each, driver)) for each in chosen]


def _guarded(name: str, record_one: Callable[[], Outcome]) -> Outcome:
    """Turn a crash into a broken promise, so that the other scenarios are still compared."""
    try:
        return record_one()
    except Exception as error:
        return Outcome(name, [], f"crashed with {type(error).__name__}: {error}")


def _simulate(runs: tuple[SimulatedRun, ...]) -> list[Outcome]:
    return [_guarded(run.id, partial(_simulate_one, run)) for run in runs]


def _simulate_one(run: SimulatedRun) -> Outcome:
    rows = find_driver().simulate(run)
    return Outcome(run.id, [_step(number, row) for number, row in enumerate(rows)])


def _step(number: int, row: tuple[float, ...]) -> list[object]:
    values = [each.hex() if isinstance(each, float) else each for each in row]
    return [f"step {number}", *values]


def _resume(run: ResumedRun) -> list[Outcome]:
    return [_guarded(run.id, partial(_resume_one, run))]


def _resume_one(run: ResumedRun) -> Outcome:
    """Hash every table; those of the interrupted run must be those of the whole one."""
    driver, hashes = find_driver(), []
    for is_interrupted in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            tables = driver.run_tables(run, Path(folder) / "run", is_interrupted)
        # The representation of a float has all of its bits.
        hashes.append(
            [
                [f"{name}, {len(rows)} rows", hashlib.sha256(repr(rows).encode()).hexdigest()]
                for name, rows in tables.items()
            ]
        )
    whole, resumed = hashes
    broken = None if whole == resumed else f"a resumed run leaves other tables: {resumed}"
    return Outcome(run.id, whole, broken)


def _regenerate(tree: Path) -> list[Outcome]:
    with tempfile.TemporaryDirectory() as folder:
        return regenerate(tree, Path(folder))


def main() -> None:
    """Record the tree that is the first argument in the file that is the second."""
    tree, out = map(Path, sys.argv[1:])
    check_source(tree)
    out.write_text(json.dumps([each._asdict() for each in record(tree)]), encoding="utf-8")


if __name__ == "__main__":
    main()
