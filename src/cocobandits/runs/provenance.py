"""Where the numbers of a run come from: code, packages, machine and command.

Code is identified by a digest too, so that runs from outside a repository, or from one with
changes, can be distinguished.
"""

import hashlib
import inspect
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

# Code that shows or stores results; all other code of the package decides what they are.
_DECIDING = tuple(f"experiments/{name}.py" for name in ("density", "diet"))
_IDLE = (
    *("cli", "experiments", "disk_cache.py", "display.py", "errors.py", "notice.py"),
    *(f"runs/{name}.py" for name in ("format", "pool", "provenance", "results", "store")),
)
_PACKAGES = ("jax", "jaxlib", "numpy")


class Source(NamedTuple):
    """What makes cells: code, packages and machine, and the command."""

    provenance: dict[str, Any]
    argv: list[str]

    @classmethod
    def here(cls, num_jobs: int) -> "Source":
        """Describe this process, and how many cells it computes at a time."""
        provenance = {
            "cocobandits": version("cocobandits"),
            "commit": _commit(),
            "source_sha256": source_digest(Path(__file__).parents[1]),
            "python": platform.python_version(),
            "packages": {name: version(name) for name in _PACKAGES},
            "machine": f"{platform.system()} {platform.machine()}",
            "processor": _processor(),
            "num_cores": num_cores(),
            "jobs": num_jobs,
        }
        return cls(provenance, [Path(sys.argv[0]).name, *sys.argv[1:]])


def is_same_code(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Check whether two provenances name the same code and packages."""
    names = ("source_sha256", "outside_sha256", "packages")
    return all(first.get(name) == second.get(name) for name in names)


def source_digest(root: Path) -> str:
    """Hash the Python files of the package at `root` that decide what a cell computes."""
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root)
        is_idle = any(place.is_relative_to(idle) for idle in _IDLE)
        if place.as_posix() in _DECIDING or not is_idle:
            digest.update(f"{place.as_posix()}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def outside_digest(*classes: type) -> str:
    """Hash the files of classes from outside the package; empty if there are none."""
    outside = (each for each in classes if each.__module__.partition(".")[0] != "cocobandits")
    digests = []
    for each in outside:
        try:
            digests.append(hashlib.sha256(Path(inspect.getfile(each)).read_bytes()).hexdigest())
        except (OSError, TypeError):  # defined at a prompt
            digests.append(f"{each.__module__}.{each.__qualname__}")
    return " ".join(digests)


def num_cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _commit() -> str | None:
    """Name the commit this package runs from; None where no repository tracks it."""
    # Another repository may merely contain the environment that the package is installed in.
    is_ours = _git("ls-files", "--error-unmatch", Path(__file__).name) is not None
    return _git("describe", "--always", "--dirty") if is_ours else None


def _git(*words: str) -> str | None:
    command = ["git", "-C", str(Path(__file__).parent), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
