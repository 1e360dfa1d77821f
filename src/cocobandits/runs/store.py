"""Run folders: one Parquet file per cell while a run goes on, packed into one when it is done.

    DIR/cells/ENVIRONMENT/NAME/seed-N.parquet   one cell; replaces a packed one of its key
    DIR/cells.parquet                           packed cells
    DIR/tables/NAME.parquet                     further tables
    DIR/.lock                                   locked by the process that writes

Every file is written under another name and moved into place in one step.
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from cocobandits.errors import ConflictError, StorageError
from cocobandits.runs.format import (
    CellKey,
    Made,
    StoredCell,
    read_cells,
    read_infos,
    read_table,
    reading,
    write_table,
)

_PACKED, _LOOSE, _TABLES, _LOCK, _PARTIAL = "cells.parquet", "cells", "tables", ".lock", ".partial"
_MADE_BY = b"cocobandits"

T = TypeVar("T")


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
        return 1 + max(info.seed for info in read_infos(packed)) if packed.is_file() else None

    def made(self) -> dict[CellKey | str, Made]:
        """Describe all stored results.

        Raises:
            StorageError: a file is damaged.
        """
        found: dict[CellKey | str, Made] = {}
        for info in _read_files(self.path, read_infos):
            found[info.key] = info.made
        for path in _table_files(self.path):
            with reading(path):
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
        cells = sorted(_read_cells(self.path), key=lambda cell: (*cell.info.order, cell.info.key))
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
    cells = _read_cells(path)
    if not cells:
        raise StorageError(
            f"Expected the folder of a run; got folder={str(path)!r}, which holds no cells. Name a "
            "folder that `coco reproduce` or `coco compare` filled."
        )
    return cells, {each.stem: read_table(each) for each in _table_files(path)}


def _read_cells(folder: Path) -> list[StoredCell]:
    return list({cell.info.key: cell for cell in _read_files(folder, read_cells)}.values())


def _read_files(folder: Path, read: Callable[[Path], list[T]]) -> list[T]:
    """Read the files with cells, the packed one first, since loose ones replace its cells.

    Safe while another process packs: a loose file is removed after its cells were packed, so loose
    files are read before the packed one, and those that are gone by then are in it.
    """
    loose: list[T] = []
    for path in _loose_files(folder):
        with suppress(FileNotFoundError):
            loose += read(path)
    packed = folder / _PACKED
    return [*(read(packed) if packed.exists() else []), *loose]


def _loose_files(folder: Path) -> list[Path]:
    # Unlike a glob, a walk passes over folders that are removed meanwhile.
    found = (Path(place) / name for place, _, names in os.walk(folder / _LOOSE) for name in names)
    return sorted(path for path in found if path.match("seed-*.parquet"))


def _table_files(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{_TABLES}/[!.]*.parquet"))
