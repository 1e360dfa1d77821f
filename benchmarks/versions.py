"""`make versions`: compare the processor time of a warm run with that of another commit.

Each tree has a process with one thread, which runs the same study once to compile and then in turn
with the other, so that both meet the same load of the machine. The ratio is that of the medians.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

from golden.compare import checked_out, choose_base
from support.compilation import ROOT

_WORKER = """
import json, sys, time
from itertools import islice
from cocobandits import CoIDS, Mixture, simulate
for line in sys.stdin:
    steps = json.loads(line)
    started = time.process_time()
    records = list(islice(simulate(CoIDS(population=Mixture()), "mixture", 0), steps))
    spent = time.process_time() - started
    print(json.dumps([spent, sum(record.regret for record in records)]), flush=True)
"""


class Worker:
    """A process that imports the package from one tree."""

    def __init__(self, tree: Path) -> None:
        changed = {"PYTHONPATH": str(tree / "src"), "COCOBANDITS_QUIET": "1"}
        # The package gives JAX one thread; NumPy has a library of its own.
        changed["OPENBLAS_NUM_THREADS"] = "1"
        self._process = subprocess.Popen(
            [sys.executable, "-c", _WORKER],
            env=os.environ | changed,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, num_steps: int) -> tuple[float, float]:
        """Run the study, and return the seconds of processor time and the total regret."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{num_steps}\n")
        self._process.stdin.flush()
        seconds, regret = json.loads(self._process.stdout.readline())
        return seconds, regret

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


def compare(base: Path, num_steps: int, num_rounds: int) -> None:
    """Print every round, the medians and their ratio."""
    workers = {"base": Worker(base), "here": Worker(ROOT)}
    seconds: dict[str, list[float]] = {name: [] for name in workers}
    try:
        for number in range(num_rounds + 1):
            for name, worker in workers.items():
                spent, regret = worker.run(num_steps)
                if number > 0:
                    seconds[name].append(spent)
                which = f"round {number}" if number else "compiling"
                print(f"{name}: {which}, {spent:.2f} s, regret {regret:.3f}", flush=True)
    finally:
        for worker in workers.values():
            worker.close()
    before, after = (median(seconds[name]) for name in ("base", "here"))
    shown = f"base {before:.2f} s, here {after:.2f} s, {after / before:.2f} times"
    print(f"{num_steps} steps, processor time: {shown}")


def main() -> None:
    """Check the other commit out, and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", help="commit to compare with (default: as in `make golden`)")
    parser.add_argument("--steps", type=int, default=750, help="decisions of a run")
    parser.add_argument("--rounds", type=int, default=3, help="runs per commit, after one warm-up")
    asked = parser.parse_args()
    with checked_out(asked.base or choose_base()) as tree:
        compare(tree, asked.steps, asked.rounds)


if __name__ == "__main__":
    main()
