"""Kinds of rewards: `Gaussian`, `Bounded` and `Bernoulli`.

Owns validation, the translation between the study's units and the standardised ones, in which
policies always maximise, and how chance makes a reward of an arm mean.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from cocobandits.checks import as_range, as_scale, is_number, is_truth
from cocobandits.errors import ConfigurationError, InputError, brief
from cocobandits.types import FloatVector

# Policies work with rewards on this range.
STANDARD_RANGE = (-2.0, 2.0)
# How rewards are distributed around an arm mean, as models see it.
RewardKind = Literal["gaussian", "bernoulli"]
FloatArray = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

# Shares of the width of the range: sums over rewards lose their digits below the first, and rewards
# say nothing above the second.
LEAST_NOISE, MOST_NOISE = 1e-4, 1e4
# Standardised rewards beyond this overflow when they are squared.
_MOST_RELATIVE_WIDTH = 1e100
# Unless limits are given, a reward further outside the range than this many noise deviations is
# refused as a typing error.
MOST_DEVIATIONS = 10.0


class Rewards(ABC):
    """One kind of rewards.

    Attributes:
        name: of the kind.
        kind: the likelihood that models use.
        noise: standard deviation of a reward around its arm mean; None if it is learned, or does
            not apply.
        maximise: whether higher rewards are better.
    """

    name: ClassVar[str]
    kind: ClassVar[RewardKind]
    _bounded_by: ClassVar[str] = "range"
    noise: float | None
    maximise: bool

    def __post_init__(self) -> None:
        low, high = as_scale("rewards", self.range)
        if not is_truth(self.maximise):
            raise ConfigurationError(
                f"Expected True or False; got maximise={self.maximise!r}. Use False if lower "
                "rewards are better."
            )
        if self.noise is not None:
            _check_noise(self.noise, high - low)

    @property
    @abstractmethod
    def range(self) -> tuple[float, float]:
        """Where arm means lie."""

    @property
    def bounds(self) -> tuple[float, float]:
        """Lowest and highest reward that is accepted; by default the ends of the range."""
        return self.range

    @property
    def scale(self) -> float:
        """Standardised units per unit of reward."""
        low, high = self.range
        return (STANDARD_RANGE[1] - STANDARD_RANGE[0]) / (high - low)

    @property
    def centre(self) -> float:
        """The reward that is zero in standardised units."""
        return (self.range[0] + self.range[1]) / 2

    @property
    def sign(self) -> float:
        """Minus one if lower rewards are better."""
        return 1.0 if self.maximise else -1.0

    @property
    def standardised_noise(self) -> float | None:
        """The noise in standardised units."""
        return None if self.noise is None else self.noise * self.scale

    def standardise(self, reward: object) -> float:
        """Check a reward and translate it to standardised units, where more is better.

        Raises:
            InputError: it is not a finite number, or none that this study can have.
        """
        return self.sign * (self.read(reward) - self.centre) * self.scale

    def restore(self, standardised: FloatVector | float) -> FloatVector | float:
        """Translate standardised arm means back to the study's units."""
        return self.sign * standardised / self.scale + self.centre

    def read(self, reward: object) -> float:
        """Check a reward.

        Raises:
            InputError: it is not a finite number, or out of bounds.
        """
        if not is_number(reward) or not math.isfinite(float(reward)):  # type: ignore[arg-type]
            raise InputError(
                f"Expected a finite number; got reward={brief(reward)}. "
                "Leave a decision without reward rather than filling one in."
            )
        value = float(reward)  # type: ignore[arg-type]
        lowest, highest = self.bounds
        if not lowest <= value <= highest:
            raise InputError(
                f"Expected a reward from {lowest:g} to {highest:g} (the {self._bounded_by} of this "
                f"study's rewards); got reward={brief(reward)}. Check its unit, or start a new "
                "study with wider ones."
            )
        return value

    @abstractmethod
    def draw_noise(self, generator: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        """Draw what chance adds to rewards, before it is known which arms are given."""

    def draw(self, arm_means: FloatArray, noise: FloatArray) -> FloatArray:
        """Make rewards of arm means and noise."""
        return arm_means + noise


@dataclass(frozen=True)
class _Ranged(Rewards):
    """Rewards with a declared range and noise around the arm mean."""

    kind: ClassVar[RewardKind] = "gaussian"
    low: float
    high: float
    noise: float | None = None

    def __post_init__(self) -> None:
        # Plain floats can be stored.
        for name in ("low", "high", "noise"):
            value = getattr(self, name)
            if is_number(value):
                object.__setattr__(self, name, float(value))
        super().__post_init__()

    @property
    def range(self) -> tuple[float, float]:
        """Where arm means lie."""
        return self.low, self.high

    def draw_noise(self, generator: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        """Draw normal deviations.

        Raises:
            ConfigurationError: the noise is not known.
        """
        if self.noise is None:
            raise ConfigurationError(
                "Expected a known noise to draw rewards with; got noise=None. Give an environment "
                "the noise of its rewards."
            )
        return self.noise * generator.normal(size=shape)


@dataclass(frozen=True)
class Gaussian(_Ranged):
    """Rewards that vary around an arm mean, and may lie outside the range of arm means.

    Attributes:
        low, high: where arm means lie; grids reach half a cell further.
        noise: standard deviation of a reward around its arm mean; None to learn it.
        limits: a reward outside is refused as a typing error; by default the range and ten noise
            deviations on either side, or half its width if the noise is learned.
        maximise: False if lower rewards are better.

    Raises:
        ConfigurationError: a value is refused; the message says what to change.
    """

    name: ClassVar[str] = "gaussian"
    _bounded_by: ClassVar[str] = "limits"
    limits: tuple[float, float] | None = None
    maximise: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.limits is None:
            return
        lowest, highest = as_range("limits", self.limits)
        if not (lowest <= self.low and self.high <= highest):
            raise ConfigurationError(
                f"Expected limits around the range {self.range}; got limits={self.limits!r}. "
                "Widen them, or leave them out."
            )
        if highest - lowest > _MOST_RELATIVE_WIDTH * (self.high - self.low):
            raise ConfigurationError(
                f"Expected limits at most {_MOST_RELATIVE_WIDTH:g} times as wide as the range "
                f"{self.range}; got limits={self.limits!r}. Narrow them."
            )
        object.__setattr__(self, "limits", (lowest, highest))

    @property
    def bounds(self) -> tuple[float, float]:
        """The limits."""
        if self.limits is not None:
            return self.limits
        width = self.high - self.low
        margin = width / 2 if self.noise is None else MOST_DEVIATIONS * self.noise
        return self.low - margin, self.high + margin


@dataclass(frozen=True)
class Bounded(_Ranged):
    """Rewards that never lie outside the range.

    Attributes:
        low, high: the least and the largest reward.
        noise: standard deviation of a reward around its arm mean; None to learn it.
        maximise: False if lower rewards are better.

    Raises:
        ConfigurationError: a value is refused; the message says what to change.
    """

    name: ClassVar[str] = "bounded"
    maximise: bool = True


@dataclass(frozen=True)
class Bernoulli(Rewards):
    """Rewards that are 0 or 1.

    Attributes:
        maximise: False if 0 is better.

    Raises:
        ConfigurationError: a value is refused; the message says what to change.
    """

    name: ClassVar[str] = "bernoulli"
    kind: ClassVar[RewardKind] = "bernoulli"
    noise: ClassVar[None] = None  # type: ignore[misc]
    maximise: bool = True

    @property
    def range(self) -> tuple[float, float]:
        """All success probabilities."""
        return 0.0, 1.0

    def read(self, reward: object) -> float:
        """Check a reward; True and False count as 1 and 0.

        Raises:
            InputError: it is neither 0 nor 1.
        """
        if is_truth(reward) or (is_number(reward) and float(reward) in self.range):  # type: ignore[arg-type]
            return float(reward)  # type: ignore[arg-type]
        raise InputError(
            "Expected a reward of 0 or 1 (rewards of this study are bernoulli); got "
            f"reward={brief(reward)}. Give 1 for a success and 0 for a failure."
        )

    def draw_noise(self, generator: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        """Draw uniform numbers."""
        return generator.uniform(size=shape)

    def draw(self, arm_means: FloatArray, noise: FloatArray) -> FloatArray:
        """Succeed as often as the arm mean says."""
        return (noise < arm_means).astype(float)


KINDS: dict[str, type[Rewards]] = {each.name: each for each in (Gaussian, Bounded, Bernoulli)}


def check_rewards(rewards: Any) -> Rewards:
    """Return rewards as they are, if they are a kind of rewards.

    Raises:
        ConfigurationError: they are not.
    """
    if isinstance(rewards, Rewards):
        return rewards
    raise ConfigurationError(
        f"Expected Gaussian(...), Bounded(...) or Bernoulli(); got rewards={brief(rewards)}. "
        "Write for example Gaussian(0, 10) if arm means lie between 0 and 10."
    )


def _check_noise(noise: float, width: float) -> None:
    if not is_number(noise) or not 0 < noise < math.inf:
        raise ConfigurationError(
            f"Expected a positive, finite noise; got noise={noise!r}. Give the standard deviation "
            "of a reward around its arm mean, or None to learn it."
        )
    if not LEAST_NOISE * width <= noise <= MOST_NOISE * width:
        raise ConfigurationError(
            f"Expected a noise from {LEAST_NOISE:g} to {MOST_NOISE:g} times the width of the range "
            f"of arm means; got noise={noise!r} for a width of {width:g}. Check the units of both."
        )
