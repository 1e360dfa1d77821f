"""All decisions of a study as one Arrow table, and that table on disk.

Owns the columns, their types and the sentence that explains each. Arms and features stand in the
column names as they were declared: `probability.<arm>`, `weight.<arm>`, `eligible.<arm>`,
`context.<feature>`; R's read.csv turns what it does not allow in a name into dots. Knows nothing of
policies or estimators.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from cocobandits.checks import is_number, read_path
from cocobandits.errors import InputError, StorageError
from cocobandits.logs.files import import_arrow, replace_file, writer_for
from cocobandits.types import Status

if TYPE_CHECKING:
    import pyarrow as pa

ContextValue = float | str | bool | None
Kind = Literal["number", "truth", "text"]

STATUSES: tuple[str, ...] = get_args(Status)
# Said of columns of texts.
_APOSTROPHE = "In CSV, an apostrophe precedes a text that a spreadsheet would take for a formula."
# Fields of a row that are columns → name of Arrow's type, and what they hold.
_COLUMNS = {
    "decision": ("string", "Id of the decision; rows are in the order of decisions."),
    "user": ("string", f"Id of the user that the decision was made for. {_APOSTROPHE}"),
    "user_step": ("int64", "Number of earlier decisions for the same user."),
    "arm": ("string", f"Arm that was chosen. {_APOSTROPHE}"),
    "probability": ("float64", "Probability of the chosen arm, after floors."),
    "draw": ("float64", "Uniform number that chose the arm."),
    "reward": ("float64", "Reward of the decision; missing if there is none."),
    "status": ("string", f"One of {', '.join(STATUSES)}."),
    "is_withdrawn": ("bool_", "Whether the user has withdrawn since."),
}
# Fields with a column per arm → start of its name, type, value of an arm that was added later, and
# what it holds.
_ARM_COLUMNS: dict[str, tuple[str, str, Any, str]] = {
    "probabilities": (
        "probability",
        "float64",
        0.0,
        "Probability with which arm {!r} was to be chosen, after floors.",
    ),
    "weights": (
        "weight",
        "float64",
        0.0,
        "Probability that the policy itself gave arm {!r}, before floors.",
    ),
    "eligible": ("eligible", "bool_", False, "Whether arm {!r} could be chosen."),
}
_FEATURE_TYPES = {"number": "float64", "truth": "bool_", "text": "string", None: "float64"}


class LogRow(NamedTuple):
    """One decision; `_COLUMNS` and `_ARM_COLUMNS` say what the fields hold.

    Arms that were added later may be missing at the end of the tuples. A feature of the context
    that is not known is None, or absent.
    """

    decision: str
    user: str
    user_step: int
    arm: str
    probability: float
    draw: float
    reward: float | None
    status: str
    is_withdrawn: bool
    probabilities: tuple[float, ...]
    weights: tuple[float, ...]
    eligible: tuple[bool, ...]
    context: dict[str, ContextValue]


def build_log(
    arms: Sequence[str],
    features: Sequence[str],
    rows: Iterable[LogRow],
    metadata: Mapping[str, str],
) -> "pa.Table":
    """Put decisions into columns, in the order in which they are given.

    The schema's metadata holds what is given, and `data_dictionary`: column → sentence, as JSON. A
    feature that has no value in any row is a column of numbers, all missing.

    Raises:
        ConfigurationError: pyarrow is not installed.
        InputError: a feature mixes types.
    """
    pa, listed = import_arrow(), list(rows)
    made, dictionary = [], {}
    for name, kind, values, sentence in _columns(arms, features, listed):
        column_type = getattr(pa, kind)()
        is_nullable = name == "reward" or name.startswith("context.")
        made.append((pa.field(name, column_type, is_nullable), pa.array(values, column_type)))
        dictionary[name] = sentence
    fields, arrays = zip(*made, strict=True)
    schema = pa.schema(fields, {**metadata, "data_dictionary": json.dumps(dictionary)})
    return pa.Table.from_arrays(arrays, schema=schema)


def _columns(
    arms: Sequence[str], features: Sequence[str], rows: list[LogRow]
) -> Iterator[tuple[str, str, list[Any], str]]:
    """List names, types, values and sentences of all columns."""
    for name, (kind, sentence) in _COLUMNS.items():
        yield name, kind, [getattr(row, name) for row in rows], sentence
    for field, (name, kind, absent, sentence) in _ARM_COLUMNS.items():
        given = [getattr(row, field) for row in rows]
        for place, arm in enumerate(arms):
            values = [each[place] if place < len(each) else absent for each in given]
            yield f"{name}.{arm}", kind, values, sentence.format(arm)
    for name in features:
        values = [row.context.get(name) for row in rows]
        found = kind_of(name, values)
        sentence = f"Context feature {name!r} of the user; missing if it is not known."
        sentence += f" {_APOSTROPHE}" if found == "text" else ""
        yield f"context.{name}", _FEATURE_TYPES[found], values, sentence


def write_log(table: "pa.Table", path: str | PathLike[str]) -> None:
    """Write a table next to its place and move it there in one step; only the owner can read it.

    The ending of the name decides: `.parquet` and `.feather` (Arrow IPC) keep types and metadata,
    `.csv` keeps neither, leaves missing values empty, and puts an apostrophe before texts that
    start with one of `= + - @`, a tab or a carriage return, which spreadsheets take for formulas.

    Raises:
        ConfigurationError: pyarrow is not installed.
        InputError: it is no path, or its name has another ending.
        StorageError: the file cannot be written.
    """
    place = read_path("path", path)
    write = writer_for(place)
    try:
        replace_file(place, lambda file: write(table, file))
    except OSError as error:
        raise StorageError(
            f"Expected a place that can be written; got path={str(path)!r} ({error}). "
            "Choose another path, or free the disk."
        ) from error


def kind_of(name: str, values: Iterable[object]) -> Kind | None:
    """Return the kind of a feature's values; None if all are missing.

    Raises:
        InputError: they are of different kinds, or of none that is known.
    """
    kinds = {_kind_of_value(value) for value in values if value is not None}
    if len(kinds) > 1 or None in kinds:
        raise InputError(
            f"Expected numbers, truth values or texts, and one of them only; got feature={name!r} "
            f"with {', '.join(sorted(kind or 'something else' for kind in kinds))}. "
            "Give every user the same kind of value."
        )
    return next(iter(kinds), None)


def _kind_of_value(value: object) -> Kind | None:
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, str):
        return "text"
    return "number" if is_number(value) else None
