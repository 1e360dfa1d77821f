"""`make versions`: compare the processor time of a warm run with that of another commit.

Each tree has a process with one thread, which runs the same study once to compile and then in turn
with the other, so that both meet the same load of the machine. The ratio is that of the medians.

With `--seeds`, compare total regret in all environments instead, paired by seed.
"""

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

from cocobandits.experiments.suites import COMPARED_ENVIRONMENTS
from golden.compare import checked_out, choose_base
from support.compilation import ROOT

_WORKER = """
import json, sys, time
from itertools import islice
from cocobandits import CoIDS, Mixture, simulate
for line in sys.stdin:
    environment, seed, steps = json.loads(line)
    started = time.process_time()
    records = list(islice(simulate(CoIDS(population=Mixture()), environment, seed), steps))
    spent = time.process_time() - started
    print(json.dumps([spent, sum(record.regret for record in records)]), flush=True)
"""


# Of an environment, a seed and at most a number of steps, all if None: seconds and total regret.
RunFn = Callable[[str, int, int | None], tuple[float, float]]


@contextmanager
def started(tree: Path) -> Iterator[RunFn]:
    """Start a process that imports the package from one tree, and end it.

    Its function runs a study, and returns the seconds of processor time and the total regret.
    """
    # The package gives JAX one thread; NumPy has a library of its own.
    changed = {"PYTHONPATH": str(tree / "src"), "OPENBLAS_NUM_THREADS": "1"}
    environment = os.environ | changed | {"COCOBANDITS_QUIET": "1"}
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process: Any = subprocess.Popen([sys.executable, "-c", _WORKER], env=environment, **pipes)

    def run(environment: str, seed: int, num_steps: int | None) -> tuple[float, float]:
        print(json.dumps([environment, seed, num_steps]), file=process.stdin, flush=True)
        seconds, regret = json.loads(process.stdout.readline())
        return seconds, regret

    with process:
        try:
            yield run
        finally:
            process.kill()


def compare(base: Path, num_steps: int, num_rounds: int) -> None:
    """Print every round, the medians and their ratio."""
    seconds: dict[str, list[float]] = {"base": [], "here": []}
    with started(base) as run_base, started(ROOT) as run_here:
        for number in range(num_rounds + 1):
            for name, run in (("base", run_base), ("here", run_here)):
                spent, regret = run("mixture", 0, num_steps)
                seconds[name].append(spent)
                which = f"round {number}" if number else "compiling"
                print(f"{name}: {which}, {spent:.2f} s, regret {regret:.3f}", flush=True)
    before, after = (median(spent[1:]) for spent in seconds.values())
    shown = f"base {before:.2f} s, here {after:.2f} s, {after / before:.2f} times"
    print(f"{num_steps} steps, processor time: {shown}")


def compare_regrets(base: Path, num_seeds: int) -> None:
    """Print total regret of both, and the mean difference over seeds with its standard error."""
    print(f"{'environment':24} {'base':>8} {'here':>8}  here - base, standard error")
    with started(base) as run_base, started(ROOT) as run_here, ThreadPoolExecutor(2) as threads:
        for environment in COMPARED_ENVIRONMENTS:

            def regrets(run: RunFn, name: str = environment) -> list[float]:
                return [run(name, seed, None)[1] for seed in range(num_seeds)]

            before, after = threads.map(regrets, (run_base, run_here))
            differences = [new - old for new, old in zip(after, before, strict=True)]
            error = stdev(differences) / math.sqrt(num_seeds)
            line = f"{mean(before):8.2f} {mean(after):8.2f}  {mean(differences):+.2f}, {error:.2f}"
            print(f"{environment:24} {line}", flush=True)


def main() -> None:
    """Check the other commit out, and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", help="commit to compare with (default: as in `make golden`)")
    parser.add_argument("--steps", type=int, default=750, help="decisions of a run")
    parser.add_argument("--rounds", type=int, default=3, help="runs per commit, after one warm-up")
    parser.add_argument("--seeds", type=int, help="compare regrets of seeds 0 to N-1, at least two")
    asked = parser.parse_args()
    with checked_out(asked.base or choose_base()) as tree:
        if asked.seeds:
            compare_regrets(tree, asked.seeds)
        else:
            compare(tree, asked.steps, asked.rounds)


if __name__ == "__main__":
    main()
