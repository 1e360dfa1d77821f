"""A finished run folder, read whole and checked before anything is computed from it.

Owns what makes a folder a run: its files, columns and cells. A cell is one (environment, policy,
seed). Computes nothing but these checks.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cocobandits.errors import StorageError
from cocobandits.experiments.schemas import (
    DENSITIES,
    EVALUATIONS,
    HEALTH,
    HYPERPARAMETERS,
    RECORDS,
)

FORMAT = "cocobandits-run"
VERSION = 1
_CELL = ["environment", "policy", "seed"]
_LISTS = ("environments", "policies", "seeds")
# Pairs of an environment and a policy that cannot deal with it.
_LEFT_OUT = "left_out"
_TREES = ("settings", "learned", "evaluation")
_SUMMARY = {*_CELL, "seconds"}


@dataclass(frozen=True)
class Run:
    """Everything that a run folder holds.

    Attributes:
        config: what was asked for.
        provenance: with which code, packages and machine.
        summary: one row per cell.
        records: one row per interaction.
        evaluations: one row per cell and round, of policies with a prior.
        health: one row per update that moved particles.
        hyperparameters: as many rows per update as there are; none in runs that kept none.
        densities: learned and true densities over time, if the run made them.
    """

    config: dict[str, Any]
    provenance: dict[str, Any]
    summary: list[dict[str, Any]]
    records: pa.Table
    evaluations: pa.Table
    health: pa.Table
    hyperparameters: pa.Table
    densities: pa.Table | None


class Outline(NamedTuple):
    """What a run folder says without its tables: see `Run`."""

    config: dict[str, Any]
    provenance: dict[str, Any]
    summary: list[dict[str, Any]]


def read_outline(folder: Path) -> Outline:
    """Read the texts of a finished run, which are small, and leave its tables alone.

    Raises:
        StorageError: the folder is missing, damaged, unfinished or not a run.
    """
    if not folder.is_dir():
        raise StorageError(
            f"Expected the folder of a run; got folder={str(folder)!r}, which is no folder. "
            "Check the path, or make a run with `coco reproduce --out DIR`."
        )
    if not (folder / "config.json").is_file():
        raise StorageError(
            f"Expected the folder of a run; got folder={str(folder)!r}, without a config.json. "
            "Name the folder that was given to `coco reproduce --out DIR`."
        )
    return Outline(
        _read_config(folder / "config.json"),
        _read_json(folder / "provenance.json", dict),
        _read_summary(folder / "summary.json"),
    )


def load_run(folder: Path) -> Run:
    """Read a finished run.

    Raises:
        StorageError: the folder is missing, damaged, unfinished or not a run.
    """
    outline = read_outline(folder)
    if outline.config.get("is_reproduction") is False:
        raise StorageError(
            f"Expected a run of `coco reproduce`; got folder={str(folder)!r}, a comparison. See it "
            f"with `coco compare --show --out {folder}`."
        )
    densities = folder / "densities.parquet"
    hyperparameters = folder / "hyperparameters.parquet"
    run = Run(
        *outline,
        records=_read_table(folder / "records.parquet", RECORDS),
        evaluations=_read_table(folder / "evaluations.parquet", EVALUATIONS),
        health=_read_table(folder / "health.parquet", HEALTH, may_hold_nan=True),
        hyperparameters=_read_table(hyperparameters, HYPERPARAMETERS)
        if hyperparameters.is_file()
        else HYPERPARAMETERS.empty_table(),
        densities=_read_table(densities, DENSITIES) if densities.is_file() else None,
    )
    _check_cells(folder, run)
    return run


def _read_config(path: Path) -> dict[str, Any]:
    config: dict[str, Any] = _read_json(path, dict)
    if config.get("format") != FORMAT:
        raise StorageError(
            f"Expected format={FORMAT!r}; got format={config.get('format')!r} in {str(path)!r}. "
            "Name a folder that `coco reproduce` wrote."
        )
    if config.get("version") != VERSION:
        raise StorageError(
            f"Expected version {VERSION} of the format; got version={config.get('version')!r} in "
            f"{str(path)!r}. Read it with the release that wrote it."
        )
    for name in _LISTS:
        if not isinstance(config.get(name), list) or not config[name]:
            raise _damaged(path, f"its {name!r} is not a list with entries")
        kind = int if name == "seeds" else str
        if not all(type(entry) is kind for entry in config[name]):
            raise _damaged(path, f"its {name!r} are not all of type {kind.__name__}")
    if not all(isinstance(pair, list) for pair in config.get(_LEFT_OUT, [])):
        raise _damaged(path, f"its {_LEFT_OUT!r} are not pairs")
    for name in _TREES:
        if not isinstance(config.get(name, {}), dict):
            raise _damaged(path, f"its {name!r} are not names with values")
    if not isinstance(config.get("settings", {}).get("inference", {}), dict):
        raise _damaged(path, "its settings of inference are not names with values")
    return config


def _read_summary(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = _read_json(path, list)
    for row in rows:
        is_whole = isinstance(row, dict) and row.keys() >= _SUMMARY
        if not is_whole or not all(isinstance(row[name], int | str) for name in _CELL):
            raise _damaged(path, "it has a row without environment, policy, seed and seconds")
        if isinstance(row["seconds"], bool) or not isinstance(row["seconds"], int | float):
            raise _damaged(path, f"its seconds are {row['seconds']!r}")
    return rows


def _read_json(path: Path, kind: type) -> Any:
    content = _attempt(path, lambda: json.loads(path.read_text(encoding="utf-8")))
    if not isinstance(content, kind):
        raise _damaged(path, f"it does not hold a {kind.__name__}")
    return content


def _read_table(path: Path, schema: pa.Schema, may_hold_nan: bool = False) -> pa.Table:
    table = _attempt(path, lambda: pq.read_table(path, page_checksum_verification=True))
    if set(table.column_names) != set(schema.names):
        raise _damaged(path, f"its columns are {', '.join(table.column_names) or 'none'}")
    table = _attempt(path, lambda: table.select(schema.names).cast(schema))
    for name in schema.names:
        column = table[name]
        if column.null_count:
            raise _damaged(path, f"its column {name!r} has {column.null_count} empty fields")
        is_number = pa.types.is_floating(column.type) and not may_hold_nan
        if is_number and not pc.all(pc.is_finite(column), min_count=0).as_py():
            raise _damaged(path, f"its column {name!r} has values that are not finite")
    return table


def _attempt(path: Path, read: Callable[[], Any]) -> Any:
    """Turn whatever goes wrong with a file into a StorageError."""
    try:
        return read()
    except FileNotFoundError as error:
        raise _unfinished(path.parent, f"{path.name} is not there") from error
    except (pa.ArrowException, OSError, ValueError) as error:
        # The first line: Arrow adds hints for programmers below it.
        raise _damaged(path, f"it cannot be read ({str(error).splitlines()[0]})") from error


def _check_cells(folder: Path, run: Run) -> None:
    """Check that every cell has each of its steps, rounds and its row in the summary."""
    left_out = {tuple(pair) for pair in run.config.get(_LEFT_OUT, [])}
    cells = [
        cell for cell in product(*(run.config[name] for name in _LISTS)) if cell[:2] not in left_out
    ]
    # A policy without beliefs has no prior to evaluate; one that has is evaluated in every cell.
    evaluated = set(run.evaluations["policy"].unique().to_pylist())
    with_prior = [cell for cell in cells if cell[1] in evaluated]
    _check_counts(folder / "records.parquet", run.records, "step", cells)
    _check_counts(folder / "evaluations.parquet", run.evaluations, "round", with_prior)
    _refuse_missing(
        folder / "summary.json", cells, {tuple(row[name] for name in _CELL) for row in run.summary}
    )
    if run.densities is not None and not run.densities.num_rows:
        raise _damaged(folder / "densities.parquet", "it is empty")
    if pc.min(run.records["regret"]).as_py() < 0 or pc.min(run.records["arm"]).as_py() < 0:
        raise _damaged(folder / "records.parquet", "it has a negative regret or arm")


def _check_counts(path: Path, table: pa.Table, index: str, cells: list[tuple[Any, ...]]) -> None:
    found = {
        tuple(row[name] for name in _CELL): row
        for row in table.group_by(_CELL)
        .aggregate([(index, "count_distinct"), (index, "count"), (index, "min"), (index, "max")])
        .to_pylist()
    }
    _refuse_missing(path, cells, set(found))
    strangers = sorted(set(found) - set(cells))
    if strangers:
        raise _damaged(path, f"{_name(strangers[0])} is not in its config.json")
    longest: dict[str, int] = {}
    for cell in cells:
        longest[cell[0]] = max(longest.get(cell[0], 0), found[cell][f"{index}_max"] + 1)
    for cell in cells:
        length = longest[cell[0]]
        numbers = [found[cell][f"{index}_{how}"] for how in ("count", "count_distinct", "min")]
        if numbers != [length, length, 0]:
            raise _damaged(path, f"{_name(cell)} does not have each {index} from 0 to {length - 1}")


def _refuse_missing(path: Path, cells: list[tuple[Any, ...]], found: set[tuple[Any, ...]]) -> None:
    missing = [cell for cell in cells if cell not in found]
    if missing:
        raise _unfinished(
            path.parent,
            f"{path.name} lacks {len(missing)} of {len(cells)} cells, first {_name(missing[0])}",
        )


def _name(cell: tuple[Any, ...]) -> str:
    return "{} / {} / seed {}".format(*cell)


def _unfinished(folder: Path, reason: str) -> StorageError:
    return StorageError(
        f"Expected a finished run; got folder={str(folder)!r}, but {reason}. "
        "Finish it with the command that it was started with, and --resume."
    )


def _damaged(path: Path, reason: str) -> StorageError:
    # Cells are kept apart from the tables they are put together to; the first two texts are not.
    remedy = (
        "Restore it, or run again in a new folder."
        if path.name in ("config.json", "provenance.json")
        else "Remove it, and run the command that made it again, with --resume."
    )
    return StorageError(
        f"Expected a file written by `coco reproduce`; got path={str(path)!r}, but {reason}. "
        f"{remedy}"
    )
