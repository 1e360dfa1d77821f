"""Standardised units, and what counts as a number, a range or a list of names.

Policies work with rewards on [-2, 2], continuous features on [-1, 1], and categories as numbers
from zero. Owns the checks that all parts of a design share.
"""

import math
from typing import Any

import numpy as np

from cocobandits.errors import ConfigurationError, brief

FloatVector = np.ndarray[tuple[int], np.dtype[np.float64]]
Truths = np.ndarray[tuple[int], np.dtype[np.bool_]]

STANDARD_RANGE = (-2.0, 2.0)
FEATURE_RANGE = (-1.0, 1.0)
MOST_CHARACTERS = 256


def is_number(value: object) -> bool:
    """Tell whether a value is a number that fits a float, and not a truth value or text."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def is_truth(value: object) -> bool:
    """Tell whether a value is a truth value, Python's or NumPy's."""
    return isinstance(value, bool | np.bool_)


def is_name(name: object) -> bool:
    """Check that something can name a user or an arm, also in a file and in a message."""
    if not isinstance(name, str) or not name.strip() or len(name) > MOST_CHARACTERS:
        return False
    try:
        name.encode()
    except UnicodeEncodeError:  # half a character
        return False
    return True


def check_names(kind: str, names: tuple[str, ...]) -> None:
    """Refuse names that are empty, no texts, or not different.

    Raises:
        ConfigurationError: one of them is.
    """
    for name in names:
        if not is_name(name):
            raise ConfigurationError(
                f"Expected a name of 1 to {MOST_CHARACTERS} characters; got {kind}={brief(name)}. "
                f"Give every {kind} a name."
            )
    if len(set(names)) < len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise ConfigurationError(
            f"Expected different names; got {kind}={repeated} more than once. Rename them."
        )


def as_range(name: str, given: object) -> tuple[float, float]:
    """Read a range as plain numbers, whatever they came as, so that it can be stored.

    Raises:
        ConfigurationError: it is no range.
    """
    pair: Any = tuple(given) if isinstance(given, list) else given
    check_range(name, pair)
    return float(pair[0]), float(pair[1])


def check_range(name: str, given: object) -> None:
    """Refuse what is not two finite numbers, the smaller first.

    Raises:
        ConfigurationError: it is not.
    """
    if isinstance(given, tuple) and len(given) == 2:
        low, high = given
        if is_number(low) and is_number(high) and -math.inf < low < high < math.inf:
            return
    raise ConfigurationError(
        f"Expected two finite numbers, the smaller first; got {name}={given!r}. "
        "Give for example (-2.0, 2.0)."
    )
