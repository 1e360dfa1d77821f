"""The decisions of a log that can be evaluated, as arrays, after every column was checked.

Reads what `build_log` makes, or a table with the same columns that went through a file, pandas or a
dictionary of lists. Only decisions with a reward, of users who have not withdrawn, are kept.
"""

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from cocobandits.errors import InputError, UnknownNameError
from cocobandits.logs.files import import_arrow, without_formula

if TYPE_CHECKING:
    import pyarrow as pa

Array = np.ndarray[Any, Any]
PerDecision = Float[Array, " decision"]
Numbers = Int[Array, " decision"]
PerArm = Float[Array, "decision arm"]

# Probabilities that a file or another program rounded are still believed.
ROUNDING = 1e-6
_ARM, _ELIGIBLE, _CONTEXT = "probability.", "eligible.", "context."
_NEEDED = ("user", "arm", "probability", "reward", "status", "is_withdrawn")


class LoggedDecisions(NamedTuple):
    """Decisions with a reward.

    Attributes:
        arms: their names, in the order of columns.
        users: number of each decision's user, in the alphabetical order of names.
        chosen: number of the chosen arm.
        probability: of the chosen arm.
        probabilities: of every arm.
        rewards: one per decision.
        contexts: feature → one value per decision; None if it is missing.
        num_left_out: decisions without reward, or of users who have withdrawn.
    """

    arms: tuple[str, ...]
    users: Numbers
    chosen: Numbers
    probability: PerDecision
    probabilities: PerArm
    rewards: PerDecision
    contexts: dict[str, list[Any]]
    num_left_out: int

    @property
    def num_users(self) -> int:
        """Users with at least one of these decisions."""
        return int(self.users.max()) + 1


def read_decisions(table: Any) -> LoggedDecisions:
    """Check a log and keep what can be evaluated.

    Raises:
        ConfigurationError: pyarrow is not installed.
        InputError: a column is missing or damaged, or fewer than two users have rewards.
        UnknownNameError: an arm was chosen that has no column.
    """
    whole = _as_table(table)
    arms = _arms_of(whole)
    is_rewarded = _column(whole, "status", "string") == "rewarded"
    is_kept = is_rewarded & ~_column(whole, "is_withdrawn", "bool")
    kept = whole.filter(import_arrow().array(is_kept))
    users = np.unique(_column(kept, "user", "string"), return_inverse=True)
    if len(users[0]) < 2:
        raise InputError(
            f"Expected rewards of at least two users; got num_users={len(users[0])} in a log of "
            f"{len(whole)} decisions. Wait for more rewards."
        )
    logged = LoggedDecisions(
        arms,
        users[1],
        _chosen(kept, arms),
        _column(kept, "probability", "float64"),
        np.stack([_column(kept, _ARM + arm, "float64") for arm in arms], axis=1),
        _column(kept, "reward", "float64"),
        _contexts(kept),
        len(whole) - len(kept),
    )
    _check(logged, np.stack([_column(kept, _ELIGIBLE + arm, "bool") for arm in arms], axis=1))
    return logged


def _as_table(given: Any) -> "pa.Table":
    pa = import_arrow()
    if isinstance(given, pa.Table):
        return given
    try:
        return pa.table(given)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"Expected a table of decisions; got {type(given).__name__} ({error}). "
            "Give an Arrow table, a data frame, or a dictionary of columns."
        ) from error


def _arms_of(table: "pa.Table") -> tuple[str, ...]:
    names: list[str] = table.column_names
    arms = tuple(name.removeprefix(_ARM) for name in names if name.startswith(_ARM))
    needed = [*_NEEDED, *(_ELIGIBLE + arm for arm in arms)]
    missing = [name for name in needed if name not in names]
    missing += [] if arms else [f"{_ARM}<arm>"]
    if missing:
        raise InputError(
            f"Expected the columns that build_log makes; got none of the name "
            f"{', '.join(missing)}. Keep all columns of the log."
        )
    return arms


def _chosen(table: "pa.Table", arms: tuple[str, ...]) -> Numbers:
    numbers = {arm: number for number, arm in enumerate(arms)}
    # In CSV, the arm "-1" of the column "probability.-1" is written as "'-1".
    numbers = {without_formula(arm): number for arm, number in numbers.items()} | numbers
    named = _column(table, "arm", "string")
    for arm in np.unique(named):
        if arm not in numbers:
            raise UnknownNameError(
                "arm", str(arm), arms, "Keep the columns of all arms, and arm as text."
            )
    return np.array([numbers[arm] for arm in named])


def _contexts(table: "pa.Table") -> dict[str, list[Any]]:
    return {
        # NaN is how pandas writes what is missing.
        name.removeprefix(_CONTEXT): [
            None if isinstance(value, float) and math.isnan(value) else value
            for value in table.column(name).to_pylist()
        ]
        for name in table.column_names
        if name.startswith(_CONTEXT)
    }


def _column(table: "pa.Table", name: str, kind: Literal["string", "float64", "bool"]) -> Array:
    """Read a column; Arrow would read numbers out of texts, and hide what is no category."""
    column, types = table.column(name), import_arrow().types
    meaning, is_fitting = {
        "string": ("texts", not types.is_nested(column.type)),
        "float64": (
            "finite numbers",
            types.is_floating(column.type) or types.is_integer(column.type),
        ),
        "bool": ("truth values", types.is_boolean(column.type)),
    }[kind]
    is_readable = column.null_count == 0 and (len(column) == 0 or is_fitting)
    values = column.cast(kind).to_numpy() if is_readable else np.zeros(0)
    if not is_readable or (kind == "float64" and not np.all(np.isfinite(values))):
        raise InputError(
            f"Expected {meaning} in every row that is evaluated; got column={name!r} of type "
            f"{column.type} with {column.null_count} values missing. Keep the type that the column "
            "was written with."
        )
    return values


def _check(logged: LoggedDecisions, eligible: Bool[Array, "decision arm"]) -> None:
    rows = np.arange(len(logged.chosen))
    inside = np.all((logged.probabilities >= 0) & (logged.probabilities <= 1 + ROUNDING))
    if not inside or np.any(np.abs(logged.probabilities.sum(axis=1) - 1) > ROUNDING):
        raise InputError(
            "Expected probabilities of arms that sum to one in every row; got others. "
            f"Keep the columns {_ARM}<arm> of all arms as they were logged."
        )
    apart = np.abs(logged.probability - logged.probabilities[rows, logged.chosen])
    if np.any(apart > ROUNDING) or np.any(logged.probability <= 0):
        raise InputError(
            "Expected the probability of the chosen arm, above zero, in the column 'probability'; "
            f"got a difference of {apart.max():g} to {_ARM}<arm> and a smallest value of "
            f"{logged.probability.min():g}. Evaluate the log as it was written."
        )
    if np.any(logged.probabilities[~eligible] > 0):
        raise InputError(
            "Expected probability zero for an arm that is not eligible; got "
            f"{logged.probabilities[~eligible].max():g}. Evaluate the log as it was written."
        )
