"""A run folder while it is being filled: finished cells, each whole or not there.

A cell is written beside its place and moved there in one step, and is never written again. When
all cells are there they are put together, in an order that does not depend on who finished when,
so an interrupted and resumed run leaves the same tables as one that was left alone.
"""

import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cocobandits.errors import ConflictError, StorageError
from cocobandits.experiments.cells import Cell, CellResult
from cocobandits.experiments.presets import REFERENCE, Experiment
from cocobandits.experiments.provenance import deciding_digest, packages, provenance
from cocobandits.experiments.reading import FORMAT, VERSION
from cocobandits.experiments.schemas import EVALUATIONS, HEALTH, HYPERPARAMETERS, RECORDS

_TABLES = {
    "records": RECORDS,
    "evaluations": EVALUATIONS,
    "health": HEALTH,
    "hyperparameters": HYPERPARAMETERS,
}
_DENSITIES = "densities.parquet"
_PARTIAL = ".partial-"


class RunFolder:
    """Where the cells of one experiment go."""

    def __init__(self, path: Path, experiment: Experiment) -> None:
        self.path = path
        self.experiment = experiment

    def prepare(self, is_resumed: bool, num_jobs: int) -> None:
        """Claim an empty folder, or a run of the same experiment.

        A run may go on with more seeds than it was started with, or end with fewer: what a cell
        computes does not depend on how many there are.

        Raises:
            ConflictError: the folder holds something else.
            StorageError: it cannot be written, or its config.json cannot be read.
        """
        config = {"format": FORMAT, "version": VERSION, **self.experiment.as_json()}
        # What a reader of the file sees: no tuples.
        config = json.loads(json.dumps(config))
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if any(self.path.iterdir()):
                self._check_claim(config, is_resumed)
            for left in self.path.rglob(f"{_PARTIAL}*"):
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            self._write_json("provenance.json", provenance(num_jobs), is_kept=True)
            self._write_json("config.json", config)
        except OSError as error:
            raise StorageError(
                f"Expected a folder that can be written; got out={str(self.path)!r} ({error}). "
                "Choose another folder."
            ) from error

    def cell_folder(self, cell: Cell) -> Path:
        """Say where a cell goes."""
        return self.path / "cells" / cell.environment / cell.policy / f"seed-{cell.seed}"

    def has(self, cell: Cell) -> bool:
        """Tell whether a cell is finished."""
        return self.cell_folder(cell).is_dir()

    def has_densities(self) -> bool:
        """Tell whether the densities are there."""
        return (self.path / _DENSITIES).is_file()

    def store(self, cell: Cell, result: CellResult) -> None:
        """Write a finished cell, unless somebody did before."""
        place = self.cell_folder(cell)
        beside = place.parent / f"{_PARTIAL}{os.getpid()}-{place.name}"
        beside.mkdir(parents=True)
        for name in _TABLES:
            _write_table(beside / f"{name}.parquet", getattr(result, name))
        (beside / "cell.json").write_text(json.dumps({"seconds": result.seconds}))
        try:
            # Renaming a folder to one that exists and is not empty fails.
            beside.rename(place)
        except OSError:
            shutil.rmtree(beside)
            if not place.is_dir():
                raise

    def store_densities(self, table: pa.Table) -> None:
        """Write the densities."""
        self._replace(_DENSITIES, partial(_write_table, table=table))

    def finish(self, cells: list[Cell]) -> None:
        """Put all cells together.

        Raises:
            StorageError: a cell is damaged.
        """
        for name, schema in _TABLES.items():
            tables = [self._read_cell(cell, name, schema) for cell in cells]
            whole = pa.concat_tables(tables).combine_chunks()
            self._replace(f"{name}.parquet", partial(_write_table, table=whole))
        self._write_json("summary.json", self._summary(cells))

    def _check_code(self) -> None:
        """Refuse to mix cells of different code."""
        try:
            told = json.loads((self.path / "provenance.json").read_text(encoding="utf-8"))
            found = told["source_sha256"], told["packages"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StorageError(
                f"Expected a run to resume; got out={str(self.path)!r}, whose provenance.json "
                f"cannot be read ({error}). Start in a new folder."
            ) from error
        if found != (deciding_digest(), packages()):
            raise ConflictError(
                f"Expected a run of this version of the code; got out={str(self.path)!r}, whose "
                "cells were made by other code or packages. Remove the folder, or choose another."
            )

    def _check_claim(self, config: dict[str, Any], is_resumed: bool) -> None:
        place = str(self.path)
        if not (self.path / "config.json").is_file():
            if (self.path / "provenance.json").is_file() and is_resumed:
                return  # interrupted between the first two files
            raise ConflictError(
                f"Expected a new or empty folder; got out={place!r}, which holds other files. "
                "Choose another folder."
            )
        if not is_resumed:
            raise ConflictError(
                f"Expected a new or empty folder; got out={place!r}, which holds a run. Add "
                "--resume to go on with it, or choose another folder."
            )
        try:
            found = json.loads((self.path / "config.json").read_text(encoding="utf-8"))
        except ValueError as error:
            raise StorageError(
                f"Expected a run to resume; got out={place!r}, whose config.json cannot be read "
                f"({error}). Start in a new folder."
            ) from error
        known = found if isinstance(found, dict) else {}
        keys = sorted(key for key in {*config, *known} if known.get(key) != config.get(key))
        if keys not in ([], ["seeds"]):
            raise ConflictError(
                f"Expected the same experiment; got out={place!r}, a run with other "
                f"{', '.join(keys)}. Resume with the options it was started with."
            )
        self._check_code()

    def _read_cell(self, cell: Cell, name: str, schema: pa.Schema) -> pa.Table:
        path = self.cell_folder(cell) / f"{name}.parquet"
        try:
            return pq.read_table(path, page_checksum_verification=True).cast(schema)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self._damaged(cell, error) from error

    def _read_seconds(self, cell: Cell) -> float:
        try:
            text = (self.cell_folder(cell) / "cell.json").read_text(encoding="utf-8")
            return float(json.loads(text)["seconds"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._damaged(cell, error) from error

    def _damaged(self, cell: Cell, error: Exception) -> StorageError:
        return StorageError(
            f"Expected a finished cell; got cell={str(cell)!r}, which cannot be read "
            f"({str(error).splitlines()[0]}). Remove {self.cell_folder(cell)} and run the same "
            f"command again with --resume."
        )

    def _summary(self, cells: list[Cell]) -> list[dict[str, Any]]:
        rows, totals = [], {}
        for cell in cells:
            regret = self._read_cell(cell, "records", RECORDS)["regret"].to_numpy()
            totals[cell] = float(regret.sum())
            rows.append(
                {
                    **cell._asdict(),
                    "steps": len(regret),
                    "total_regret": totals[cell],
                    "second_half_regret": float(regret[len(regret) // 2 :].sum()),
                    "multitask_regret": None,
                    "seconds": self._read_seconds(cell),
                }
            )
        for cell, row in zip(cells, rows, strict=True):
            reference = totals.get(cell._replace(policy=REFERENCE))
            if reference is not None:
                row["multitask_regret"] = totals[cell] - reference
        return rows

    def _write_json(self, name: str, content: Any, is_kept: bool = False) -> None:
        if is_kept and (self.path / name).is_file():
            return
        text = json.dumps(content, indent=1) + "\n"
        self._replace(name, partial(Path.write_text, data=text, encoding="utf-8"))

    def _replace(self, name: str, write: Callable[[Path], Any]) -> None:
        beside = self.path / f"{_PARTIAL}{os.getpid()}-{name}"
        write(beside)
        beside.replace(self.path / name)


def num_seeds_of(path: Path) -> int | None:
    """Count the seeds that a run was last asked for; None where there is no run to be read."""
    try:
        return len(json.loads((path / "config.json").read_text(encoding="utf-8"))["seeds"]) or None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write_table(path: Path, table: pa.Table) -> None:
    pq.write_table(table, path, compression="zstd", write_page_checksum=True)
