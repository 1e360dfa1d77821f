"""Formats that a table is written in, each whole or not at all.

pyarrow comes with the extra `experiments`, which a study works without: it is imported when a table
is asked for, and whoever has not installed it is told how.
"""

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NamedTuple

from cocobandits.errors import ConfigurationError, InputError

# Columns that a CSV reader would take for numbers if ids or names are digits.
_TEXTS = ("decision", "user", "arm", "status")
# A field, in quotes or not, and what ends it.
_FIELD = re.compile(r'("(?:[^"]|"")*"|[^",\r\n]*)(,|\r?\n|\r|\Z)')


class Format(NamedTuple):
    """How a table is written to an open file, and read from a path."""

    write: Callable[..., None]
    read: Callable[..., Any]


def import_arrow(module: str = "pyarrow") -> Any:
    """Import pyarrow, or one of its modules, when it is needed.

    Raises:
        ConfigurationError: it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigurationError(
            f"Expected the packages for experiments; got none of the name {module}. "
            "Install them with: pip install 'cocobandits[experiments]'"
        ) from error


def format_of(path: Path) -> Format:
    """Choose a format by the ending of a name.

    Raises:
        ConfigurationError: pyarrow is not installed.
        InputError: the name has another ending.
    """
    formats = {".parquet": _parquet, ".feather": _feather, ".csv": _csv}
    if path.suffix.lower() not in formats:
        raise InputError(
            f"Expected a name that ends in {', '.join(formats)}; got path={str(path)!r}. "
            "Choose one of these formats."
        )
    return formats[path.suffix.lower()]()


def replace_file(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    """Write a file beside its place and move it there in one step; only the owner can read it."""
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


def _parquet() -> Format:
    parquet = import_arrow("pyarrow.parquet")
    # Or a folder named a=b on the way to the file would become a column.
    return Format(parquet.write_table, partial(parquet.read_table, partitioning=None))


def _feather() -> Format:
    feather = import_arrow("pyarrow.feather")
    return Format(partial(feather.write_feather, version=2), feather.read_table)


def _csv() -> Format:
    csv = import_arrow("pyarrow.csv")

    def read(path: str) -> Any:
        # A category may be called NA: only a field without anything, quotes included, is missing.
        convert_options = csv.ConvertOptions(
            column_types=dict.fromkeys((*_TEXTS, *_quoted_columns(path)), "string"),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        parse_options = csv.ParseOptions(newlines_in_values=True)
        return csv.read_csv(path, parse_options=parse_options, convert_options=convert_options)

    return Format(csv.write_csv, read)


def _quoted_columns(path: str) -> list[str]:
    """List the columns whose first value is in quotes: a text, also if it looks like a number."""
    rows = _raw_rows(Path(path).read_text(encoding="utf-8"))
    names = [field.strip('"').replace('""', '"') for field in next(rows, [])]
    firsts: dict[str, str] = {}
    for row in rows:
        firsts |= {
            name: field
            for name, field in zip(names, row, strict=False)
            if field and name not in firsts
        }
        if len(firsts) == len(names):
            break
    return [name for name, field in firsts.items() if field.startswith('"')]


def _raw_rows(text: str) -> Iterator[list[str]]:
    row: list[str] = []
    for match in _FIELD.finditer(text):
        row.append(match.group(1))
        if match.group(2) != ",":
            yield row
            row = []
