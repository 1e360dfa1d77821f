"""Checks of values that users give: numbers, ranges, names, paths and settings.

Settings are checked when they are built. Whatever is given, a text or None included, the answer is
a `ConfigurationError`; arguments of calls, such as paths, get an `InputError`.
"""

import math
import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import fields
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from cocobandits.errors import ConfigurationError, InputError, brief

# Of a user id, or the name of an arm, a feature or a category.
MOST_CHARACTERS = 256
# Within these, a range, its scale and their squares are finite and above zero.
_LEAST_WIDTH, _MOST_SIZE = 1e-100, 1e100
# A range that is narrower, compared with its distance from zero, has too few floats inside.
_LEAST_RELATIVE_WIDTH = 1e-9


class Kind(NamedTuple):
    """A kind of number: how it is called, whether a finite one is of it, and what else to give."""

    words: str
    is_met: Callable[[float], bool]
    remedy: str


def is_number(value: object) -> bool:
    """Check that a value is a number that fits a float: no truth value, text, date or duration."""
    # NumPy counts durations among its integers.
    if isinstance(value, bool | np.timedelta64):
        return False
    # Those that can be stored; fractions and decimals cannot.
    if not isinstance(value, int | float | np.integer | np.floating):
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
    for name, value in _given(settings, names):
        if not (is_number(value) and math.isfinite(value) and is_met(value)):
            raise ConfigurationError(f"Expected {words}; got {name}={value!r}. {remedy or default}")


def check_whole(
    settings: object, *names: str, least: int = 1, most: int = 1_000_000_000, remedy: str
) -> None:
    """Refuse fields that are not whole numbers within limits.

    Raises:
        ConfigurationError: one is not.
    """
    for name, value in _given(settings, names):
        if type(value) is not int or not least <= value <= most:
            raise ConfigurationError(
                f"Expected a whole number from {least:,} to {most:,}; got {name}={value!r}. "
                f"{remedy}"
            )


def _given(settings: Any, names: Collection[str]) -> Iterator[tuple[str, Any]]:
    """List fields with their values; None is left out where the declaration allows it."""
    kinds = {each.name: each.type for each in fields(settings)}
    for name in names:
        value = getattr(settings, name)
        if value is not None or NoneType not in get_args(kinds[name]):
            yield name, value


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
    return is_utf8(name)


def is_utf8(text: str) -> bool:
    """Check that a text can be written to a file; half a character cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:  # half a character
        return False
    return True


def plain_name(value: Any) -> Any:
    """Return the plain text of a `str` of a subclass, and any other value as it is."""
    # A member of a `str` enumeration equals its value, but prints as Class.MEMBER.
    return str.__str__(value) if isinstance(value, str) else value


def read_name(words: str, field: str, value: object, remedy: str) -> str:
    """Read the name of a user, an arm or a request.

    Raises:
        InputError: it is refused.
    """
    if is_name(value):
        return str(plain_name(value))
    raise InputError(
        f"Expected {words} of 1 to {MOST_CHARACTERS} characters; got {field}={brief(value)}. "
        f"{remedy}"
    )


def read_path(name: str, value: object) -> Path:
    """Read a path that is given as text or as an `os.PathLike`.

    Raises:
        InputError: it is neither, or no file can have that name.
    """
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if isinstance(text, str) and "\0" not in text and is_utf8(text):
        return Path(plain_name(text))
    raise InputError(
        f"Expected a path as text in UTF-8, or as a pathlib.Path; got {name}={brief(value)}. "
        "Write for example 'folder/name'."
    )


def check_names(kind: str, names: tuple[str, ...]) -> None:
    """Refuse names that are empty, no texts, or not different.

    Raises:
        ConfigurationError: one of them is.
    """
    for name in names:
        if not is_name(name):
            raise ConfigurationError(
                f"Expected a name of 1 to {MOST_CHARACTERS} characters; got {kind}={brief(name)}. "
                f"Give every {kind} a name that can be written in UTF-8."
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
    if isinstance(given, list | tuple) and len(given) == 2:
        low, high = given
        if is_number(low) and is_number(high) and -math.inf < low < high < math.inf:
            return float(low), float(high)
    raise ConfigurationError(
        f"Expected two finite numbers, the smaller first; got {name}={given!r}. "
        "Give for example (-2.0, 2.0)."
    )


def as_scale(name: str, given: object) -> tuple[float, float]:
    """Read a range that other numbers are divided by.

    Raises:
        ConfigurationError: it is no range, or too wide, too narrow or too far from zero to compute
            with.
    """
    low, high = as_range(name, given)
    size = max(abs(low), abs(high))
    if size > _MOST_SIZE or high - low < max(_LEAST_WIDTH, _LEAST_RELATIVE_WIDTH * size):
        raise ConfigurationError(
            f"Expected a range between -{_MOST_SIZE:g} and {_MOST_SIZE:g} that is at least "
            f"{_LEAST_WIDTH:g} wide, and {_LEAST_RELATIVE_WIDTH:g} of its distance from zero; got "
            f"{name}={(low, high)}. Choose another unit, or count from another zero."
        )
    return low, high
