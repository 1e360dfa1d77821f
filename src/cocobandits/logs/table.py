"""All decisions of a study as one Arrow table, and that table on disk.

Owns the columns, their types and the sentence that explains each. Arms and features stand in the
column names as they were declared: `probability.<arm>`, `weight.<arm>`, `eligible.<arm>`,
`context.<feature>`; R's read.csv turns what it does not allow in a name into dots. Knows nothing of
policies or estimators.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from cocobandits.checks import is_number, read_path
from cocobandits.errors import InputError, StorageError, UnknownNameError
from cocobandits.logs.files import import_arrow, replace_file, writer_for
from cocobandits.types import Status

if TYPE_CHECKING:
    import pyarrow as pa

ContextValue = float | str | bool | None
Kind = Literal["number", "truth", "text"]

STATUSES: tuple[str, ...] = get_args(Status)
_ARM_SENTENCES = {
    "probability": "Probability with which arm {name!r} was to be chosen, after floors.",
    "weight": "Probability that the policy itself gave arm {name!r}, before floors.",
    "eligible": "Whether arm {name!r} could be chosen.",
}
# Said of columns of texts.
_APOSTROPHE = "In CSV, an apostrophe precedes a text that a spreadsheet would take for a formula."


class LogRow(NamedTuple):
    """One decision; arms that were added later may be missing at the end of the tuples.

    Attributes:
        decision: its id.
        user: who is served.
        user_step: how many earlier decisions that user had.
        arm: the arm that was chosen.
        probability: of the chosen arm, after floors.
        draw: the uniform number that chose the arm.
        reward: None if there is none.
        status: one of `STATUSES`.
        is_withdrawn: whether the user has withdrawn since.
        probabilities: of every arm, after floors.
        weights: probabilities that the policy gave, before floors.
        eligible: whether each arm could be chosen.
        context: feature → value; None, or no entry, if it is not known.
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


class _Column(NamedTuple):
    name: str
    type: Any
    values: list[Any]
    sentence: str
    is_nullable: bool = False


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
        InputError: a row has too many arms or no known status, or a feature mixes types.
        UnknownNameError: a row names an arm or a feature that is not listed.
    """
    pa = import_arrow()
    listed = list(rows)
    for row in listed:
        _check_row(row, arms, features)
    columns = [
        *_decision_columns(pa, listed),
        *_arm_columns(pa, arms, listed),
        *(_feature_column(pa, name, listed) for name in features),
    ]
    dictionary = json.dumps({column.name: column.sentence for column in columns})
    schema = pa.schema(
        [pa.field(column.name, column.type, column.is_nullable) for column in columns],
        metadata={**metadata, "data_dictionary": dictionary},
    )
    arrays = [pa.array(column.values, column.type) for column in columns]
    return pa.Table.from_arrays(arrays, schema=schema)


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


def _check_row(row: LogRow, arms: Sequence[str], features: Sequence[str]) -> None:
    if row.arm not in arms:
        raise UnknownNameError("arm", row.arm, arms, "List every arm that was ever chosen.")
    for name in row.context:
        if name not in features:
            raise UnknownNameError("feature", name, features, "List every feature of the context.")
    if row.status not in STATUSES:
        raise InputError(
            f"Expected one of {list(STATUSES)}; got status={row.status!r} for decision="
            f"{row.decision!r}. Use one of these."
        )
    most = max(map(len, (row.probabilities, row.weights, row.eligible)))
    if most > len(arms):
        raise InputError(
            f"Expected at most {len(arms)} values, one per arm; got {most} for decision="
            f"{row.decision!r}. List all arms."
        )


def _decision_columns(pa: Any, rows: list[LogRow]) -> list[_Column]:
    number, text, truth = pa.float64(), pa.string(), pa.bool_()
    described = [
        ("decision", text, "Id of the decision; rows are in the order of decisions."),
        ("user", text, f"Id of the user that the decision was made for. {_APOSTROPHE}"),
        ("user_step", pa.int64(), "Number of earlier decisions for the same user."),
        ("arm", text, f"Arm that was chosen. {_APOSTROPHE}"),
        ("probability", number, "Probability of the chosen arm, after floors."),
        ("draw", number, "Uniform number that chose the arm."),
        ("reward", number, "Reward of the decision; missing if there is none."),
        ("status", text, f"One of {', '.join(STATUSES)}."),
        ("is_withdrawn", truth, "Whether the user has withdrawn since."),
    ]
    return [
        _Column(name, kind, [getattr(row, name) for row in rows], sentence, name == "reward")
        for name, kind, sentence in described
    ]


def _arm_columns(pa: Any, arms: Sequence[str], rows: list[LogRow]) -> list[_Column]:
    number, truth = pa.float64(), pa.bool_()
    described: list[tuple[str, Any, list[Any], Any]] = [
        ("probability", number, [row.probabilities for row in rows], 0.0),
        ("weight", number, [row.weights for row in rows], 0.0),
        ("eligible", truth, [row.eligible for row in rows], False),
    ]
    return [
        _Column(
            f"{name}.{arm}",
            kind,
            [given[place] if place < len(given) else absent for given in column],
            _ARM_SENTENCES[name].format(name=arm),
        )
        for name, kind, column, absent in described
        for place, arm in enumerate(arms)
    ]


def _feature_column(pa: Any, name: str, rows: list[LogRow]) -> _Column:
    values = [row.context.get(name) for row in rows]
    types = {"number": pa.float64(), "truth": pa.bool_(), "text": pa.string()}
    kind = kind_of(name, values) or "number"
    sentence = f"Context feature {name!r} of the user; missing if it is not known."
    if kind == "text":
        sentence = f"{sentence} {_APOSTROPHE}"
    return _Column(f"context.{name}", types[kind], values, sentence, True)
