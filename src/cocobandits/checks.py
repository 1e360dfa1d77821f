"""Checks of values that users give: numbers, ranges, names and settings.

Settings are checked when they are built. Whatever is given, a text or None included, the answer is
a `ConfigurationError`.
"""

import math
from collections.abc import Callable, Collection
from typing import Any, Literal, NamedTuple

import numpy as np

from cocobandits.errors import ConfigurationError, brief

# Of a user id or the name of an arm.
MOST_CHARACTERS = 256


class Kind(NamedTuple):
    """A kind of number: how it is called, whether a finite one is of it, and what else to give."""

    words: str
    is_met: Callable[[float], bool]
    remedy: str


def is_number(value: object) -> bool:
    """Check that a value is a number that fits a float, and not a truth value or text."""
    # Those that can be stored; fractions and decimals cannot.
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


KindName = Literal["finite", "positive", "not negative", "fraction", "share"]
_KINDS: dict[KindName, Kind] = {
    "finite": Kind("a finite number", math.isfinite, "Use 0."),
    "positive": Kind("a positive number", lambda value: value > 0, "Give a positive value."),
    "not negative": Kind(
        "a finite number of at least 0", lambda value: value >= 0, "Change it, or leave it out."
    ),
    "fraction": Kind(
        "a number above 0 and below 1", lambda value: 0 < value < 1, "Give one between them."
    ),
    "share": Kind(
        "a number above 0 and at most 1", lambda value: 0 < value <= 1, "Use 1 for the whole."
    ),
}


def check_numbers(settings: object, kind: KindName, *names: str, remedy: str | None = None) -> None:
    """Refuse fields that are not numbers of a kind.

    Raises:
        ConfigurationError: one is not.
    """
    words, is_met, default = _KINDS[kind]
    for name in names:
        value: Any = getattr(settings, name)
        if not (is_number(value) and math.isfinite(value) and is_met(value)):
            raise ConfigurationError(f"Expected {words}; got {name}={value!r}. {remedy or default}")


def check_whole(
    settings: object, *names: str, least: int = 1, most: int = 1_000_000_000, remedy: str
) -> None:
    """Refuse fields that are not whole numbers within limits.

    Raises:
        ConfigurationError: one is not.
    """
    for name in names:
        value = getattr(settings, name)
        if type(value) is not int or not least <= value <= most:
            raise ConfigurationError(
                f"Expected a whole number from {least:,} to {most:,}; got {name}={value!r}. "
                f"{remedy}"
            )


def check_choice(settings: object, name: str, allowed: Collection[object]) -> None:
    """Refuse a field that is none of some values.

    Raises:
        ConfigurationError: it is not.
    """
    value = getattr(settings, name)
    if not isinstance(value, str) or value not in allowed:
        raise ConfigurationError(
            f"Expected {name} in {tuple(allowed)}; got {name}={value!r}. Choose one of these."
        )


def freeze(values: Any) -> Any:
    """Turn arrays and lists into nested tuples, which can be hashed."""
    plain = values.tolist() if hasattr(values, "tolist") else values
    return tuple(map(freeze, plain)) if isinstance(plain, list | tuple) else plain


def is_truth(value: object) -> bool:
    """Check that a value is a truth value, Python's or NumPy's."""
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
