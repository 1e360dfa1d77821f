"""Formats that a table is written in, each whole or not at all.

Spreadsheets run a text that starts like a formula, so CSV has an apostrophe in front of it: ids and
names may come from outside. The other formats keep texts exactly.

pyarrow comes with the extra `experiments`, which a study works without: it is imported when a table
is asked for, and an error says how to install it.
"""

import os
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from cocobandits.errors import ConfigurationError, InputError

if TYPE_CHECKING:
    import pyarrow as pa

# Per ending, the module and the function that writes a table to an open file.
_WRITERS = {
    ".parquet": ("pyarrow.parquet", "write_table"),
    ".feather": ("pyarrow.feather", "write_feather"),
    ".csv": ("pyarrow.csv", "write_csv"),
}
# What a formula of a spreadsheet can start with.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def import_arrow(module: str = "pyarrow") -> Any:
    """Import pyarrow, or one of its modules, when it is needed.

    Raises:
        ConfigurationError: it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigurationError(
            f"Missing optional dependency: {module}. Install it with: "
            "pip install 'cocobandits[experiments]'"
        ) from error


def writer_for(path: Path) -> Callable[..., None]:
    """Choose a format by the ending of a name.

    Raises:
        ConfigurationError: pyarrow is not installed.
        InputError: the name has another ending.
    """
    if path.suffix.lower() not in _WRITERS:
        raise InputError(
            f"Expected a name that ends in {', '.join(_WRITERS)}; got path={str(path)!r}. "
            "Choose one of these formats."
        )
    module, name = _WRITERS[path.suffix.lower()]
    write = getattr(import_arrow(module), name)
    if path.suffix.lower() != ".csv":
        return write
    return lambda table, file: write(_without_formulas(table), file)


def without_formula(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would take for a formula."""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def _without_formulas(table: "pa.Table") -> "pa.Table":
    pa = import_arrow()
    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            values = table.column(place).to_pylist()
            plain = [None if value is None else without_formula(value) for value in values]
            table = table.set_column(place, field, pa.array(plain, field.type))
    return table.rename_columns([without_formula(name) for name in table.column_names])


def replace_file(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    """Write a file next to its place and move it there in one step; only the owner can read it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".log-")
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
