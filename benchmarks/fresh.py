"""Tasks of `test_start` and `test_memory`, each in a process of its own.

python benchmarks/fresh.py import | decide | move | memory CASE [--quick]
"""

import re
import sys
from pathlib import Path

import cocobandits


def serve_newcomer(until_moved: bool) -> None:
    """Open a study as a newcomer would; stop at the first decision, or at the first moves."""
    rewards = cocobandits.Gaussian(-2.0, 2.0, noise=0.1)
    study = cocobandits.Study(["one", "two", "three"], {"x": (-1.0, 1.0)}, rewards, seed=0)
    study.enrol("anna", {"x": 0.3})
    decision = study.decide("anna")
    while until_moved and not (study.health and study.health.is_rejuvenated):
        study.reward(decision.id, 1.0)
        decision = study.decide("anna")


def print_memory(name: str, *options: str) -> None:
    """Serve a case, and print the largest memory of this process in kilobytes; Linux only."""
    import studies  # noqa: PLC0415 - the other tasks are timed with their imports
    import timed  # noqa: PLC0415

    case = studies.CASES[name].quick() if options else studies.CASES[name]
    timed.serve(case.open(), case)
    # getrusage would begin with the peak of the parent process.
    print(re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[0])


if __name__ == "__main__":
    task, *rest = sys.argv[1:]
    if task == "memory":
        print_memory(*rest)
    elif task != "import":
        serve_newcomer(until_moved=task == "move")
