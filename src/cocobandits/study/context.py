"""Features of a context: how they are declared, read, standardised and shown again.

A context that was read is a vector of numbers in the user's own units: values of continuous
features as they are, categories as numbers from zero, truth values as 0 and 1, and NaN for what is
missing. It can be shown again exactly as it was given.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cocobandits.checks import as_scale, check_names, is_number, is_truth, plain_name
from cocobandits.errors import ConfigurationError, InputError, UnknownNameError, brief
from cocobandits.types import FloatVector

# Continuous features are scaled to this range.
FEATURE_RANGE = (-1.0, 1.0)
FeatureDeclaration = tuple[float, float] | Sequence[str] | type[bool]
ContextDeclaration = Mapping[str, FeatureDeclaration]
ContextValue = float | str | bool | None
ContextValues = Mapping[str, ContextValue]


@dataclass(frozen=True)
class Feature:
    """One context feature: a continuous range, a list of categories, or a truth value.

    Raises:
        ConfigurationError: its name, its range or a category is refused.
    """

    name: str
    range: tuple[float, float] | None = None
    categories: tuple[str, ...] = ()
    is_boolean: bool = False

    def __post_init__(self) -> None:
        check_names("feature", (self.name,))
        check_names(f"category of {self.name}", self.categories)
        if self.range is not None:
            object.__setattr__(self, "range", as_scale(self.name, self.range))

    @classmethod
    def declare(cls, name: str, declared: FeatureDeclaration) -> "Feature":
        """Read a declaration: a tuple (low, high), a list of category names, or the type `bool`.

        Raises:
            ConfigurationError: it is none of these, or has a name or a range that is refused.
        """
        name = plain_name(name)
        check_names("feature", (name,))  # before messages name it
        if declared is bool:
            return cls(name, is_boolean=True)
        if isinstance(declared, tuple) and len(declared) == 2 and all(map(is_number, declared)):
            return cls(name, range=declared)  # type: ignore[arg-type]
        if isinstance(declared, list | tuple) and len(declared) >= 2:
            names = tuple(map(plain_name, declared))
            if all(isinstance(item, str) for item in names):
                return cls(name, categories=names)
        raise ConfigurationError(
            f"Expected a range (low, high), a list of at least two category names, or bool; got "
            f"{name}={brief(declared)}. Write for example (18, 90), ['low', 'high'], or bool."
        )

    @property
    def num_categories(self) -> int | None:
        """How many categories there are; None for a continuous feature."""
        return 2 if self.is_boolean else len(self.categories) or None

    @property
    def declared(self) -> str:
        """What values it may have, in words."""
        if self.is_boolean:
            return "True or False"
        if self.range is None:
            return "one of " + ", ".join(self.categories)
        return f"{self.range[0]:g} to {self.range[1]:g}"

    def read(self, value: object) -> float:
        """Turn a value into a number in its own units; None is missing.

        Raises:
            InputError: the value has the wrong type or lies outside the declaration.
        """
        if value is None:
            return math.nan
        if self.is_boolean:
            return self._read_truth(value)
        return self._read_category(value) if self.range is None else self._read_number(value)

    def standardise(self, number: float) -> float:
        """Bring a number to [-1, 1]; categories and what is missing stay."""
        if self.range is None:
            return number
        low, high = self.range
        return 2.0 * (number - low) / (high - low) - 1.0

    def show(self, number: float) -> ContextValue:
        """Turn a number back into a value as it was given."""
        if math.isnan(number):
            return None
        if self.is_boolean:
            return bool(number)
        return float(number) if self.range is not None else self.categories[int(number)]

    def _read_truth(self, value: object) -> float:
        if not is_truth(value):
            raise InputError(
                f"Expected True or False; got {self.name}={brief(value)}. Give a truth value, "
                "or None if it is not known."
            )
        return float(value)  # type: ignore[arg-type]

    def _read_category(self, value: object) -> float:
        category = plain_name(value)
        if not isinstance(category, str) or category not in self.categories:
            raise InputError(
                f"Expected one of the categories {list(self.categories)}; got "
                f"{self.name}={brief(value)}. Use a declared category, or None if it is not known."
            )
        return float(self.categories.index(category))

    def _read_number(self, value: object) -> float:
        assert self.range is not None
        low, high = self.range
        if not is_number(value):
            raise InputError(
                f"Expected a number; got {self.name}={brief(value)}. Give a value from "
                f"{low:g} to {high:g}, or None if it is not known."
            )
        number = float(value)  # type: ignore[arg-type]
        if not low <= number <= high:
            advice = (
                "Use None if it is not known."
                if math.isnan(number)
                else "Check the value, or declare a wider range in a new study."
            )
            raise InputError(
                f"Expected a value from {low:g} to {high:g}; got {self.name}={brief(value)}. "
                f"{advice}"
            )
        return number


def read_context(features: tuple[Feature, ...], values: ContextValues) -> FloatVector:
    """Turn a context into numbers; what is None or left out is missing.

    Raises:
        InputError: a value is refused.
        UnknownNameError: a feature was never declared.
    """
    names = [feature.name for feature in features]
    if not isinstance(values, Mapping):
        raise InputError(
            f"Expected a mapping from feature to value; got context={brief(values)}. "
            f"Give the features {names}."
        )
    for name in values:
        if name not in names:
            raise UnknownNameError("feature", name, names, "Leave it out.")
    return np.array([feature.read(values.get(feature.name)) for feature in features])


def standardise_context(features: tuple[Feature, ...], numbers: FloatVector) -> FloatVector:
    """Bring every continuous feature to [-1, 1]."""
    pairs = zip(features, numbers, strict=True)
    return np.array([feature.standardise(float(number)) for feature, number in pairs])


def show_context(features: tuple[Feature, ...], numbers: FloatVector) -> dict[str, ContextValue]:
    """Turn numbers back into a context; None is missing."""
    pairs = zip(features, numbers, strict=True)
    return {feature.name: feature.show(float(number)) for feature, number in pairs}
