"""Where the numbers of a run come from: code, packages and machine.

Code is told by digests too, so that runs from outside a repository, or from one with changes, can
be told apart.
"""

import hashlib
import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

_DECIDING = (
    "models",
    "inference",
    "policies",
    "study",
    "environments",
    "simulation",
    "experiments/cells.py",
    "experiments/density.py",
    "experiments/presets.py",
    "runtime.py",
    "types.py",
)
_PACKAGES = ("jax", "jaxlib", "numpy", "pyarrow", "matplotlib")


def provenance(num_jobs: int) -> dict[str, Any]:
    """Tell with which code, packages and machine cells are made, and how many at once."""
    return {
        "cocobandits": version("cocobandits"),
        "commit": _commit(),
        "source_sha256": deciding_digest(),
        "environments_sha256": environments_digest(),
        "python": platform.python_version(),
        "packages": packages(),
        "machine": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "num_cores": num_cores(),
        "jobs": num_jobs,
    }


def packages() -> dict[str, str]:
    """Name the versions of the packages that numbers depend on."""
    return {name: version(name) for name in _PACKAGES}


def deciding_digest() -> str:
    """Hash the code that decides what a cell computes, also where there is no repository."""
    return source_digest(Path(__file__).parents[1], _DECIDING)


def environments_digest() -> str:
    """Hash the code that decides whom policies meet, whatever they are."""
    return source_digest(Path(__file__).parents[1], ("environments", "simulation"))


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
