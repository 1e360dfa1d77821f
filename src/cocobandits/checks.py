"""Settings when they are built: numbers of the right kind and size, and values that can be hashed.

Whatever is given, a text or None included, the answer is a `ConfigurationError`.
"""

import math
from collections.abc import Callable, Collection
from typing import Any, Literal, NamedTuple

import numpy as np

from cocobandits.errors import ConfigurationError

# Those that can be stored; fractions and decimals cannot.
_NUMBERS = (int, float, np.integer, np.floating)


class Kind(NamedTuple):
    """A kind of number: how it is called, whether a finite one is of it, and what else to give."""

    words: str
    is_met: Callable[[float], bool]
    remedy: str


def is_number(value: object) -> bool:
    """Tell whether a value is a finite real number; truth values are none."""
    if isinstance(value, bool) or not isinstance(value, _NUMBERS):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


KindName = Literal["finite", "positive", "not negative", "fraction", "share"]
_KINDS: dict[KindName, Kind] = {
    "finite": Kind("a finite number", is_number, "Use 0."),
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
        if not is_number(value) or not is_met(value):
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
