"""What a process of its own does for `parts.startup`, by the name of the task.

    python benchmarks/parts/child.py decide | run [SCALE]

Prints one line of JSON.
"""

import json
import resource
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))


def decide() -> dict[str, str]:
    """Make the first decision of a study that is opened as a newcomer would open it."""
    from cocobandits import Study  # noqa: PLC0415 - importing is part of what is timed

    study = Study(["one", "two", "three"], {"x": (-1.0, 1.0)}, (-2.0, 2.0), 0.1)
    study.enrol("anna", {"x": 0.3})
    return {"arm": study.decide("anna").arm}


def run(scale_name: str) -> dict[str, float]:
    """Make the library's whole run, and say how much memory the process had at most."""
    from cocobandits.environments.registry import build_environment  # noqa: PLC0415
    from parts.runs import ENVIRONMENT, POLICY, SEED  # noqa: PLC0415 - nor for `decide`
    from parts.scale import SCALES  # noqa: PLC0415
    from parts.timed import timed_run  # noqa: PLC0415

    scale = SCALES[scale_name]
    timed_run(build_environment(ENVIRONMENT), POLICY, SEED, scale.paper, scale.full_steps)
    return {"peak_memory_mb": peak_bytes() / 1e6}


def peak_bytes() -> int:
    """Read the largest memory that this process has had."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not from getrusage, which on Linux begins with what the parent process had.
        [line] = [each for each in status.read_text().splitlines() if each.startswith("VmHWM")]
        return 1024 * int(line.split()[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


if __name__ == "__main__":
    task, *rest = sys.argv[1:]
    print(json.dumps(decide() if task == "decide" else run(*rest)))
