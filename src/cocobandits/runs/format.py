"""Cell files: a Parquet table with a start row per cell, followed by one row per step.

The start row holds the cell's description as JSON (`info`) and the evaluation before any reward.
A summary, whose steps were not kept, is its start row alone. A packed file concatenates cells.
"""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cocobandits.checks import freeze
from cocobandits.display import Line
from cocobandits.errors import ConfigurationError, StorageError, brief

# Counts start at zero; regrets and rewards are in units of reward. Each of these has a value in
# every step; the other columns only where something happened.
STEP_COLUMNS = ("step", "round", "user", "user_step", "arm", "probability", "reward", "regret")
_HEALTH = {
    "ess": pa.float64(),
    "acceptance_rate": pa.float64(),
    "num_moves": pa.int64(),
    "distinct_ancestors": pa.int64(),
    "start_correlation": pa.float64(),
}
# 5 %, 50 % and 95 % points over particles, in the study's units.
_HYPERPARAMETER = {"name": pa.string()} | dict.fromkeys(("low", "median", "high"), pa.float64())
HEALTH_COLUMNS, HYPERPARAMETER_COLUMNS = tuple(_HEALTH), tuple(_HYPERPARAMETER)
SCHEMA = pa.schema(
    {"info": pa.string()}
    | dict.fromkeys(STEP_COLUMNS[:5], pa.int64())
    | dict.fromkeys(STEP_COLUMNS[5:], pa.float64())
    | {"evaluation": pa.float64(), "health": pa.struct(_HEALTH)}
    | {"hyperparameters": pa.list_(pa.struct(_HYPERPARAMETER))}
)
_TOLERANCE = 1e-6

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
        names = ("settings", "reward_range", "newcomers")
        parts = {name: getattr(self, name) for name in names}
        drawn = {"size": (self.num_users, self.num_steps), "users": self.world_sha256}
        return Made(plain(self.key._asdict() | parts | drawn), self.provenance)

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


class StoredCell(NamedTuple):
    """A cell as it is stored: `table` has its start row and steps."""

    info: CellInfo
    table: pa.Table

    @property
    def steps(self) -> pa.Table:
        """The rows of the steps."""
        return self.table.slice(1)

    def is_complete(self) -> bool:
        """Check that no step or evaluation was lost."""
        info, steps = self.info, self.steps
        if not info.has_steps:
            return steps.num_rows == 0 and math.isfinite(info.total_regret)
        if steps.num_rows != info.num_steps or any(steps[name].null_count for name in STEP_COLUMNS):
            return False
        regrets = steps["regret"].to_numpy()
        sums = [total(regrets), second_half(regrets)]
        stored = [info.total_regret, info.second_half_regret]
        return bool(
            len(self.table["evaluation"].drop_null()) == info.num_evaluations
            and np.isfinite(sums).all()
            and np.allclose(stored, sums, _TOLERANCE, _TOLERANCE)
        )


def total(regrets: Values) -> Values:
    """Sum regret over the last axis, the steps."""
    return np.asarray(np.sum(regrets, axis=-1))


def second_half(regrets: Values) -> Values:
    """Sum regret over the later half of the last axis, the steps."""
    return total(regrets[..., regrets.shape[-1] // 2 :])


def cell_table(info: CellInfo, steps: list[dict[str, Any]], first: float | None = None) -> pa.Table:
    """Build the table of a cell from its steps and the evaluation before the first one."""
    text = json.dumps(info._asdict() | {"line": info.line._asdict()}, ensure_ascii=False)
    return pa.Table.from_pylist([{"info": text, "evaluation": first}, *steps], SCHEMA)


def read_cells(path: Path) -> list[StoredCell]:
    """Read the cells of a file, and check that each is complete.

    Raises:
        FileNotFoundError: there is no such file.
        StorageError: the file is damaged.
    """
    with reading(path):
        table = read_table(path).select(SCHEMA.names).cast(SCHEMA).combine_chunks()
        _check_start(path, table)
        starts = np.flatnonzero(table["info"].is_valid()).tolist()
        cells = [
            StoredCell(CellInfo.parse(part["info"][0].as_py()), part)
            for start, end in zip(starts, [*starts[1:], table.num_rows], strict=True)
            for part in [table.slice(start, end - start)]
        ]
        for cell in cells:
            if not cell.is_complete():
                raise _damaged(path, f"{cell.info.key} lacks steps or evaluations")
        return cells


def read_infos(path: Path) -> list[CellInfo]:
    """Read the descriptions of the cells of a file.

    Raises:
        FileNotFoundError: there is no such file.
        StorageError: the file is damaged.
    """
    with reading(path):
        table = read_table(path, ["info"])
        _check_start(path, table)
        return [CellInfo.parse(text) for text in table["info"].drop_null().to_pylist()]


def write_table(path: Path, table: pa.Table) -> None:
    """Write a table with checksums."""
    pq.write_table(table, path, compression="zstd", write_page_checksum=True)


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


def read_table(path: Path, columns: list[str] | None = None) -> pa.Table:
    """Read a table that `write_table` wrote.

    Raises:
        FileNotFoundError: there is no such file.
        StorageError: the file is damaged.
    """
    with reading(path):
        return pq.read_table(path, columns=columns, page_checksum_verification=True)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn any error of a damaged file into one sentence.

    Raises:
        FileNotFoundError: there is no such file.
        StorageError: the file cannot be read.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        if isinstance(error, StorageError):
            raise
        # The first line: Arrow adds hints for programmers below it.
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise _damaged(path, f"it cannot be read ({reason})") from error


def _check_start(path: Path, table: pa.Table) -> None:
    """Refuse a file of cells that does not begin with one.

    Raises:
        StorageError: it does not.
    """
    if not table.num_rows or not table["info"][0].is_valid:
        raise _damaged(path, "it does not begin with a cell")


def _damaged(path: Path, reason: str) -> StorageError:
    return StorageError(
        f"Expected a file that `coco` wrote; got path={str(path)!r}, but {reason}. Restore it, or "
        "remove it and run the command that made it again."
    )
