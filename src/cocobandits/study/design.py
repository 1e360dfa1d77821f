"""The design of a study: arms, context, rewards, policy. Validated once, then frozen.

Owns the translation between the user's units and the standardised ones that policies work in:
rewards on [-2, 2], continuous features on [-1, 1], categories as numbers from zero.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cocobandits.errors import ConfigurationError, InputError, UnknownNameError
from cocobandits.models.base import LEAST_NOISE
from cocobandits.policies.base import Problem
from cocobandits.policies.registry import policy_names
from cocobandits.policies.settings import CocoSettings, default_settings, preset

ContextDeclaration = Mapping[str, tuple[float, float] | Sequence[str]]
ContextValues = Mapping[str, float | str]
FloatVector = np.ndarray[tuple[int], np.dtype[np.float64]]

STANDARD_RANGE = (-2.0, 2.0)
FEATURE_RANGE = (-1.0, 1.0)
# Unless limits are given, a reward further outside the range than this many noise deviations is
# taken for a typing error.
MOST_DEVIATIONS = 10.0
# The same as LEAST_NOISE on the other side: rewards that say nothing.
MOST_NOISE = 1e4


@dataclass(frozen=True)
class Feature:
    """One context feature: a continuous range or a list of categories."""

    name: str
    range: tuple[float, float] | None = None
    categories: tuple[str, ...] = ()

    @classmethod
    def declare(cls, name: str, declared: tuple[float, float] | Sequence[str]) -> "Feature":
        """Read a declaration: a tuple (low, high) is a range, a list of names are categories.

        Raises:
            ConfigurationError: it is neither.
        """
        if isinstance(declared, tuple) and len(declared) == 2 and all(map(is_number, declared)):
            low, high = float(declared[0]), float(declared[1])
            if not (math.isfinite(low) and math.isfinite(high) and low < high):
                raise ConfigurationError(
                    f"Expected a finite range with low < high; got {name}={declared!r}. "
                    "Give the smallest value first."
                )
            return cls(name, range=(low, high))
        is_listing = isinstance(declared, list | tuple)
        is_named = is_listing and all(isinstance(item, str) and item.strip() for item in declared)
        if is_named and len(declared) >= 2:
            names = tuple(str(item) for item in declared)
            if len(set(names)) < len(names):
                raise ConfigurationError(
                    f"Expected different categories; got {name}={declared!r}. Remove the repeated."
                )
            return cls(name, categories=names)
        raise ConfigurationError(
            f"Expected a range (low, high) or a list of at least two category names; got "
            f"{name}={declared!r}. Write for example (18, 90) or ['low', 'high']."
        )

    @property
    def num_categories(self) -> int | None:
        """How many categories there are; None for a continuous feature."""
        return len(self.categories) or None

    def encode(self, value: object) -> float:
        """Translate a value to standardised units.

        Raises:
            InputError: the value has the wrong type or lies outside the declaration.
        """
        if self.range is None:
            if not isinstance(value, str) or value not in self.categories:
                raise InputError(
                    f"Expected one of the categories {list(self.categories)}; got "
                    f"{self.name}={value!r}. Use a declared category."
                )
            return float(self.categories.index(value))
        if not is_number(value):
            raise InputError(
                f"Expected a number; got {self.name}={value!r}. Give a value from "
                f"{self.range[0]:g} to {self.range[1]:g}."
            )
        low, high = self.range
        number = float(value)  # type: ignore[arg-type]
        if not low <= number <= high:
            raise InputError(
                f"Expected a value from {low:g} to {high:g}; got {self.name}={value!r}. "
                "Check the value, or declare a wider range in a new study."
            )
        return 2.0 * (number - low) / (high - low) - 1.0


@dataclass(frozen=True)
class StudyDesign:
    """Everything that is fixed when a study starts."""

    arms: tuple[str, ...]
    features: tuple[Feature, ...]
    reward_range: tuple[float, float]
    reward_noise: float | None
    policy: str
    seed: int
    settings: CocoSettings
    reward_limits: tuple[float, float]

    def __post_init__(self) -> None:
        _check_names("arm", self.arms)
        _check_names("feature", tuple(feature.name for feature in self.features))
        if len(self.arms) < 2:
            raise ConfigurationError(
                f"Expected at least two arms; got arms={list(self.arms)}. Add one to choose from."
            )
        _check_range("reward_range", self.reward_range)
        _check_range("reward_limits", self.reward_limits)
        if self.reward_noise is not None:
            self._check_noise(self.reward_noise)
        if not (
            self.reward_limits[0] <= self.reward_range[0]
            and self.reward_range[1] <= self.reward_limits[1]
        ):
            raise ConfigurationError(
                f"Expected limits around the range {self.reward_range}; got "
                f"reward_limits={self.reward_limits!r}. Widen them, or leave them out."
            )
        is_whole = isinstance(self.seed, int) and not isinstance(self.seed, bool)
        if not is_whole or not 0 <= self.seed < 2**63:
            raise ConfigurationError(
                f"Expected a whole number from zero to 2^63 - 1; got seed={self.seed!r}. "
                "Use for example 0."
            )
        if self.policy not in policy_names():
            raise UnknownNameError("policy", self.policy, policy_names(), "Choose one of these.")

    def _check_noise(self, noise: float) -> None:
        if not is_number(noise) or not 0 < noise < math.inf:
            raise ConfigurationError(
                f"Expected a positive, finite noise; got reward_noise={noise!r}. Give the standard "
                "deviation of a reward around its arm mean, or None to learn it."
            )
        width = self.reward_range[1] - self.reward_range[0]
        if not LEAST_NOISE * width <= noise <= MOST_NOISE * width:
            raise ConfigurationError(
                f"Expected a noise from {LEAST_NOISE:g} to {MOST_NOISE:g} times the width of the "
                f"reward range; got reward_noise={noise!r} for a width of {width:g}. "
                "Check the units of both."
            )

    @classmethod
    def declare(  # noqa: PLR0913, PLR0917 - the design of a study has this many parts
        cls,
        arms: Sequence[str],
        context: ContextDeclaration,
        reward_range: tuple[float, float],
        reward_noise: float | None,
        policy: str,
        seed: int,
        settings: CocoSettings | str | None,
        reward_limits: tuple[float, float] | None,
    ) -> "StudyDesign":
        """Read a design as a user writes it.

        Raises:
            ConfigurationError: a part of it is refused.
            UnknownNameError: there is no such policy.
        """
        if isinstance(arms, str) or not isinstance(arms, Sequence):
            raise ConfigurationError(
                f"Expected a list of arm names; got arms={arms!r}. Write for example ['a', 'b']."
            )
        if not isinstance(context, Mapping):
            raise ConfigurationError(
                f"Expected a mapping from feature to range or categories; got context={context!r}. "
                "Write for example {'age': (18, 90)}, or {} for no context."
            )
        if isinstance(settings, str):
            settings = preset(settings)
        if settings is not None and not isinstance(settings, CocoSettings):
            raise ConfigurationError(
                f"Expected CocoSettings or the name of a preset; got settings={settings!r}. Leave "
                "it out for the defaults."
            )
        features = tuple(Feature.declare(name, declared) for name, declared in context.items())
        low, high = _as_range("reward_range", reward_range)
        noise = float(reward_noise) if is_number(reward_noise) else reward_noise  # type: ignore[arg-type]
        if reward_limits is None:
            margin = _margin(noise, high - low)
            reward_limits = (low - margin, high + margin)
        # Plain numbers, whatever they came as, so that the design can be stored.
        return cls(
            tuple(arms),
            features,
            (low, high),
            noise,
            policy,
            _as_whole(seed),
            default_settings(policy) if settings is None else settings,
            _as_range("reward_limits", reward_limits),
        )

    @property
    def scale(self) -> float:
        """Standardised units per unit of reward."""
        low, high = self.reward_range
        return (STANDARD_RANGE[1] - STANDARD_RANGE[0]) / (high - low)

    @property
    def centre(self) -> float:
        """The reward that standardised units call zero."""
        return (self.reward_range[0] + self.reward_range[1]) / 2

    def problem(self) -> Problem:
        """Describe the study to a policy."""
        return Problem(
            len(self.arms),
            tuple(feature.num_categories for feature in self.features),
            STANDARD_RANGE,
            None if self.reward_noise is None else self.reward_noise * self.scale,
        )

    def encode_context(self, values: ContextValues) -> FloatVector:
        """Translate a context to standardised units.

        Raises:
            InputError: a feature is missing, or a value is refused.
            UnknownNameError: a feature was never declared.
        """
        names = [feature.name for feature in self.features]
        if not isinstance(values, Mapping):
            raise InputError(
                f"Expected a mapping from feature to value; got context={values!r}. "
                f"Give the features {names}."
            )
        for name in values:
            if name not in names:
                raise UnknownNameError("feature", name, names, "Leave it out.")
        missing = [name for name in names if name not in values]
        if missing:
            raise InputError(
                f"Expected a value for every feature; got none for {missing}. Give all of {names}."
            )
        return np.array([feature.encode(values[feature.name]) for feature in self.features])

    def standardise(self, reward: object) -> float:
        """Translate a reward to standardised units.

        Raises:
            InputError: it is not a finite number, or implausibly far outside the range.
        """
        if not is_number(reward) or not math.isfinite(float(reward)):  # type: ignore[arg-type]
            raise InputError(
                f"Expected a finite number; got reward={reward!r}. "
                "Leave a decision without reward rather than filling one in."
            )
        value = float(reward)  # type: ignore[arg-type]
        lowest, highest = self.reward_limits
        if not lowest <= value <= highest:
            raise InputError(
                f"Expected a reward from {lowest:g} to {highest:g} (the limits of this study); "
                f"got reward={reward!r}. "
                "Check its unit, or declare wider reward_limits in a new study."
            )
        return (value - self.centre) * self.scale

    def restore(self, standardised: FloatVector | float) -> FloatVector | float:
        """Translate standardised arm means back to the user's units."""
        return standardised / self.scale + self.centre


def is_number(value: object) -> bool:
    """Tell whether a value is a number that fits a float, and not a truth value or text."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def _margin(noise: object, width: float) -> float:
    """Choose how far outside the range a reward may lie: half the width if noise is not known."""
    if noise is None:
        return width / 2
    is_usable = is_number(noise) and 0 < float(noise) < math.inf  # type: ignore[arg-type]
    return MOST_DEVIATIONS * float(noise) if is_usable else 0.0  # type: ignore[arg-type]


def _as_whole(value: Any) -> Any:
    return int(value) if isinstance(value, np.integer) else value


def _check_names(kind: str, names: tuple[str, ...]) -> None:
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise ConfigurationError(
                f"Expected a non-empty text as name; got {kind}={name!r}. Give every {kind} a name."
            )
    if len(set(names)) < len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise ConfigurationError(
            f"Expected different names; got {kind}={repeated} more than once. Rename them."
        )


def _as_range(name: str, given: object) -> tuple[float, float]:
    pair: Any = tuple(given) if isinstance(given, list) else given
    _check_range(name, pair)
    return float(pair[0]), float(pair[1])


def _check_range(name: str, given: object) -> None:
    if isinstance(given, tuple) and len(given) == 2:
        low, high = given
        if is_number(low) and is_number(high) and -math.inf < low < high < math.inf:
            return
    raise ConfigurationError(
        f"Expected two finite numbers, the smaller first; got {name}={given!r}. "
        "Give for example (-2.0, 2.0)."
    )
