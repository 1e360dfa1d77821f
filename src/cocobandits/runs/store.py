"""Run folders: one Parquet file per cell while a run goes on, packed into one when it is done.

    DIR/cells/ENVIRONMENT/NAME/seed-N.parquet   one cell; replaces a packed one of its key
    DIR/cells.parquet                           packed cells
    DIR/tables/NAME.parquet                     further tables
    DIR/.lock                                   locked by the process that writes

A cell is a start row, followed by one row per step. The start row holds the cell's description as
JSON (`info`) and the evaluation before any reward. A summary, whose steps were not kept, is its
start row alone. Every file is written under another name and moved into place in one step.
"""

import fcntl
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cocobandits.errors import ConflictError, StorageError
from cocobandits.runs.info import CellInfo, CellKey, Made, second_half, total

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
SCHEMA = pa.schema(
    {"info": pa.string()}
    | dict.fromkeys(STEP_COLUMNS[:5], pa.int64())
    | dict.fromkeys(STEP_COLUMNS[5:], pa.float64())
    | {"evaluation": pa.float64(), "health": pa.struct(_HEALTH)}
    | {"hyperparameters": pa.list_(pa.struct(_HYPERPARAMETER))}
)
_PACKED, _LOOSE, _TABLES, _LOCK, _PARTIAL = "cells.parquet", "cells", "tables", ".lock", ".partial"
_MADE_BY = b"cocobandits"
_TOLERANCE = 1e-6


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
        regrets = steps["regret"].to_numpy()
        sums = [total(regrets), second_half(regrets)]
        return bool(
            steps.num_rows == info.num_steps
            and not any(steps[name].null_count for name in STEP_COLUMNS)
            and len(self.table["evaluation"].drop_null()) == info.num_evaluations
            and np.isfinite(sums).all()
            and np.allclose(
                sums, [info.total_regret, info.second_half_regret], _TOLERANCE, _TOLERANCE
            )
        )


class RunFolder:
    """A folder that this process may write to; see `open_folder`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def num_seeds(self) -> int | None:
        """Count the seeds of the last command that came to its end; None if there was none.

        Raises:
            StorageError: the packed file is damaged.
        """
        packed = self.path / _PACKED
        return 1 + max(cell.info.seed for cell in read_cells(packed)) if packed.is_file() else None

    def made(self) -> dict[CellKey | str, Made]:
        """Describe all stored results.

        Raises:
            StorageError: a file is damaged.
        """
        found: dict[CellKey | str, Made] = {
            cell.info.key: cell.info.made for cell in _all_cells(self.path)
        }
        for path in _table_files(self.path):
            with _reading(path):
                found[path.stem] = Made(**json.loads(pq.read_schema(path).metadata[_MADE_BY]))
        return found

    def save(self, key: CellKey | str, table: pa.Table, made: Made) -> None:
        """Store a finished cell or table.

        Raises:
            StorageError: it cannot be written.
        """
        if isinstance(key, str):
            path = self.path / _TABLES / f"{key}.parquet"
            table = table.replace_schema_metadata({_MADE_BY: json.dumps(made._asdict())})
        else:
            path = self.path / _LOOSE / key.environment / key.name / f"seed-{key.seed}.parquet"
        self._write(path, table)

    def pack(self) -> None:
        """Move all loose cells into the packed file.

        Raises:
            StorageError: a cell is damaged, or the file cannot be written.
        """
        loose = _loose_files(self.path)
        if not loose:
            return
        cells = sorted(_all_cells(self.path), key=lambda cell: (*cell.info.order, cell.info.key))
        whole = pa.concat_tables([cell.table for cell in cells]).combine_chunks()
        self._write(self.path / _PACKED, whole)
        for path in loose:
            path.unlink()
        folders = sorted((self.path / _LOOSE).rglob("*"), reverse=True)
        for folder in (*folders, self.path / _LOOSE):
            with suppress(OSError):  # somebody else's file, or a folder that holds one
                folder.rmdir()

    def _write(self, path: Path, table: pa.Table) -> None:
        partial = path.with_name(f"{_PARTIAL}-{path.name}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_table(partial, table)
            partial.replace(path)
        except OSError as error:
            raise StorageError(
                f"Expected space in a folder that can be written; got out={str(self.path)!r} "
                f"({error}). Finished cells are kept: free space, then run the same command again."
            ) from error


@contextmanager
def open_folder(path: Path) -> Iterator[RunFolder]:
    """Lock a new folder, or one with a run in it.

    Raises:
        ConflictError: it holds other files, or another process writes to it.
        StorageError: it cannot be written.
    """
    is_run = any((path / name).is_file() for name in (_PACKED, _LOCK)) or bool(_loose_files(path))
    if path.is_dir() and any(path.iterdir()) and not is_run:
        raise ConflictError(
            f"Expected a new folder, or one with a run; got out={str(path)!r}, which holds other "
            "files. Choose another folder."
        )
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = (path / _LOCK).open("a")
    except OSError as error:
        raise StorageError(
            f"Expected a folder that can be written; got out={str(path)!r} ({error}). Choose "
            "another folder."
        ) from error
    with lock:
        try:
            # The lock ends with the process.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ConflictError(
                f"Expected a folder that no other process writes to; got out={str(path)!r}, in use "
                "by another run. Wait for its end, or choose another folder."
            ) from error
        for left in path.rglob(f"{_PARTIAL}-*"):
            left.unlink()
        yield RunFolder(path)


def read_folder(path: Path) -> tuple[list[StoredCell], dict[str, pa.Table]]:
    """Read the cells and further tables of a run.

    Raises:
        StorageError: the folder holds no cells, or a file is damaged.
    """
    cells, tables = _all_cells(path), {}
    if not cells:
        raise StorageError(
            f"Expected the folder of a run; got folder={str(path)!r}, which holds no cells. Name a "
            "folder that `coco reproduce` or `coco compare` filled."
        )
    for each in _table_files(path):
        with _reading(each):
            tables[each.stem] = _read_table(each)
    return cells, tables


def read_cells(path: Path) -> list[StoredCell]:
    """Read the cells of a file, and check that each is complete.

    Raises:
        FileNotFoundError: there is no such file.
        StorageError: the file is damaged.
    """
    with _reading(path):
        table = _read_table(path).select(SCHEMA.names).cast(SCHEMA).combine_chunks()
        starts = np.flatnonzero(table["info"].is_valid()).tolist()
        if starts[:1] != [0]:
            raise ValueError("it does not begin with a cell")
        sizes = np.diff([*starts, table.num_rows]).tolist()
        parts = [table.slice(*place) for place in zip(starts, sizes, strict=True)]
        cells = [StoredCell(CellInfo.parse(part["info"][0].as_py()), part) for part in parts]
        for cell in cells:
            if not cell.is_complete():
                raise ValueError(f"{cell.info.key} lacks steps or evaluations")
        return cells


def cell_table(info: CellInfo, steps: list[dict[str, Any]], first: float | None = None) -> pa.Table:
    """Build the table of a cell from its steps and the evaluation before the first one."""
    text = json.dumps(info._asdict() | {"line": info.line._asdict()}, ensure_ascii=False)
    return pa.Table.from_pylist([{"info": text, "evaluation": first}, *steps], SCHEMA)


def write_table(path: Path, table: pa.Table) -> None:
    """Write a table with checksums."""
    pq.write_table(table, path, compression="zstd", write_page_checksum=True)


def _read_table(path: Path) -> pa.Table:
    return pq.read_table(path, page_checksum_verification=True)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn any error of a damaged file into one sentence; a missing one is none."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        # The first line: Arrow adds hints for programmers below it.
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise StorageError(
            f"Expected a file that `coco` wrote; got path={str(path)!r}, but it cannot be read "
            f"({reason}). Restore it, or remove it and run the command that made it again."
        ) from error


def _all_cells(folder: Path) -> list[StoredCell]:
    """Read all cells, those of the packed file first, since loose ones replace them.

    Safe while another process packs: a loose file is removed after its cells were packed, so loose
    files are read before the packed one, and those that are gone by then are in it.
    """
    loose: list[StoredCell] = []
    for path in _loose_files(folder):
        with suppress(FileNotFoundError):
            loose += read_cells(path)
    packed = folder / _PACKED
    cells = [*(read_cells(packed) if packed.exists() else []), *loose]
    return list({cell.info.key: cell for cell in cells}.values())


def _loose_files(folder: Path) -> list[Path]:
    # Unlike a glob, a walk passes over folders that are removed meanwhile.
    found = (Path(place) / name for place, _, names in os.walk(folder / _LOOSE) for name in names)
    return sorted(path for path in found if path.match("seed-*.parquet"))


def _table_files(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{_TABLES}/[!.]*.parquet"))
