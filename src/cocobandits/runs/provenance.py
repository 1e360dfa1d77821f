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

_DECIDING = (
    "models",
    "inference",
    "policies",
    "study",
    "environments",
    "simulation",
    "runs/cell.py",
    "rewards.py",
    "runtime.py",
    "types.py",
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
            "source_sha256": source_digest(Path(__file__).parents[1], _DECIDING),
            "python": platform.python_version(),
            "packages": {name: version(name) for name in _PACKAGES},
            "machine": f"{platform.system()} {platform.machine()}",
            "processor": _processor(),
            "num_cores": num_cores(),
            "jobs": num_jobs,
        }
        return cls(provenance, [Path(sys.argv[0]).name, *sys.argv[1:]])


def is_same_code(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Tell whether two provenances name the same code and packages."""
    names = ("source_sha256", "outside_sha256", "packages")
    return all(first.get(name) == second.get(name) for name in names)


def source_digest(root: Path, parts: tuple[str, ...]) -> str:
    """Hash the Python files and folders of Python files that lie under `root`."""
    digest = hashlib.sha256()
    files = (
        path
        for part in parts
        for path in ((root / part).rglob("*.py") if (root / part).is_dir() else [root / part])
    )
    for path in sorted(files):
        digest.update(f"{path.relative_to(root).as_posix()}\n".encode())
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
    """Name the commit this package runs from; None outside a repository."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
