"""What a cell is, and where it comes from: key, description, code, packages, machine and command.

Owns what regret is summed to. Code is identified by a digest too, so that runs from outside a
repository, or from one with changes, can be distinguished.
"""

import hashlib
import inspect
import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cocobandits.checks import freeze
from cocobandits.display import Line
from cocobandits.errors import ConfigurationError, brief

# Code that shows or stores results; all other code of the package decides what they are.
_DECIDING = "experiments/density.py"
_IDLE = (
    *("cli", "experiments", "disk_cache.py", "display.py", "errors.py", "notice.py"),
    *(f"runs/{name}.py" for name in ("info", "pool", "results", "store")),
)
_PACKAGES = ("jax", "jaxlib", "numpy")

Values = np.ndarray[Any, np.dtype[np.float64]]


class CellKey(NamedTuple):
    """Where a cell stands in a run."""

    environment: str
    name: str
    seed: int

    def __str__(self) -> str:
        return f"{self.environment} / {self.name} / seed {self.seed}"


class Made(NamedTuple):
    """How a result was made.

    Attributes:
        identity: all that decides what is computed, code apart, in plain values.
        provenance: code, packages and machine.
    """

    identity: dict[str, Any]
    provenance: dict[str, Any]


class CellInfo(NamedTuple):
    """The description of a cell, stored in its start row.

    Attributes:
        environment, name, seed: the key; `name` is that of the policy in its suite.
        environment_label, label, line, order: for display; order of environment and policy.
        settings: of the policy, in plain values.
        reward_range: of arm means, as the policy was configured.
        newcomers: evaluation users and their pulls; (0, 0) for none.
        world_sha256: of users and rewards; empty if it is not known.
        num_users: in all.
        num_outside: users with an arm mean outside `reward_range`; -1 if it is not known.
        num_steps, num_evaluations: rows that a complete cell has.
        total_regret, second_half_regret: as `total` and `second_half` define them.
        seconds: of the interactions, without evaluation.
        suite, is_quick: the experiment.
        provenance: code, packages and machine; argv: the command.
        has_steps: False for a summary whose steps were not kept.
        table_one, published: criteria of the paper's Table 1 that the policy meets, as tried here
            and as the paper says; empty if there are none.
        library: that the policy comes from; empty for this package.
        used: the settings with what the simulation filled in; empty if they are not known.
    """

    environment: str
    name: str
    seed: int
    environment_label: str
    label: str
    line: Line
    order: tuple[int, int]
    settings: dict[str, Any]
    reward_range: tuple[float, float]
    newcomers: tuple[int, int]
    num_users: int
    num_steps: int
    suite: str
    is_quick: bool
    provenance: dict[str, Any]
    argv: list[str]
    world_sha256: str = ""
    num_outside: int = -1
    num_evaluations: int = 0
    total_regret: float = 0.0
    second_half_regret: float = 0.0
    seconds: float = 0.0
    has_steps: bool = True
    table_one: str = ""
    published: str = ""
    library: str = ""
    used: dict[str, Any] = {}  # noqa: RUF012 - never changed

    @property
    def key(self) -> CellKey:
        """The key of the cell in a run."""
        return CellKey(self.environment, self.name, self.seed)

    @property
    def made(self) -> Made:
        """How the cell was made."""
        names = (*CellKey._fields, "settings", "reward_range", "newcomers")
        parts = {name: getattr(self, name) for name in names}
        drawn = {"size": (self.num_users, self.num_steps), "users": self.world_sha256}
        return Made(plain(parts | drawn), self.provenance)

    @classmethod
    def parse(cls, text: str) -> "CellInfo":
        """Read what `cell_table` wrote.

        Raises:
            TypeError, ValueError, KeyError: it did not write that.
        """
        raw = json.loads(text)
        pairs = {name: tuple(raw[name]) for name in ("order", "reward_range", "newcomers")}
        line = Line(**raw["line"] | {"dashes": freeze(raw["line"]["dashes"])})
        return cls(**raw | pairs | {"line": line})


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


def total(regrets: Values) -> Values:
    """Sum regret over the last axis, the steps."""
    return np.asarray(np.sum(regrets, axis=-1))


def second_half(regrets: Values) -> Values:
    """Sum regret over the later half of the last axis, the steps."""
    return total(regrets[..., regrets.shape[-1] // 2 :])


def plain(value: Any) -> Any:
    """Turn tuples into lists, as JSON does.

    Raises:
        ConfigurationError: it holds a value that JSON cannot hold.
    """
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            "Expected settings that can be stored: numbers, texts, truth values, None, and lists "
            f"or mappings of them; got {brief(value)} ({error}). Turn an array into a tuple."
        ) from error


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
        if place.as_posix() == _DECIDING or not is_idle:
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
