"""What a reward of a study is: its kind, range, noise and limits, and which end is better.

Owns the translation between the user's units and the standardised ones, in which policies always
maximise: where lower rewards are better, the sign is turned.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from cocobandits.errors import ConfigurationError, InputError
from cocobandits.models.base import LEAST_NOISE
from cocobandits.study.units import (
    STANDARD_RANGE,
    FloatVector,
    as_range,
    check_range,
    is_number,
    is_truth,
)

RewardKind = Literal["gaussian", "bounded", "bernoulli"]

# Unless limits are given, a reward further outside the range than this many noise deviations is
# taken for a typing error.
MOST_DEVIATIONS = 10.0
# The same as LEAST_NOISE on the other side: rewards that say nothing.
MOST_NOISE = 1e4
_YES_NO = (0.0, 1.0)


@dataclass(frozen=True)
class RewardDesign:
    """What is fixed about rewards when a study starts.

    Attributes:
        kind: "gaussian" for noise around an arm mean; "bounded" if no reward lies outside the
            range; "bernoulli" if every reward is 0 or 1.
        range: where arm means lie.
        noise: standard deviation of a reward around its arm mean; None if it is learned, or if
            rewards are 0 or 1.
        limits: a reward outside is refused.
        is_maximised: whether higher rewards are better.
    """

    kind: RewardKind
    range: tuple[float, float]
    noise: float | None
    limits: tuple[float, float]
    is_maximised: bool

    def __post_init__(self) -> None:
        _check_kind(self.kind)
        check_range("reward_range", self.range)
        check_range("reward_limits", self.limits)
        if self.kind == "bernoulli":
            self._check_yes_no()
        elif self.noise is not None:
            self._check_noise(self.noise)
        self._check_limits()
        if type(self.is_maximised) is not bool:
            raise ConfigurationError(
                f"Expected True or False; got maximise={self.is_maximised!r}. Use False if lower "
                "rewards are better."
            )

    @classmethod
    def declare(
        cls, kind: Any, reward_range: Any, noise: Any, limits: Any, is_maximised: Any
    ) -> "RewardDesign":
        """Read what a user writes about rewards.

        Raises:
            ConfigurationError: a part of it is refused.
        """
        _check_kind(kind)
        if reward_range is None and kind == "bernoulli":
            reward_range = _YES_NO
        if reward_range is None:
            raise ConfigurationError(
                f"Expected a range for {kind} rewards; got reward_range=None. Give where arm means "
                "lie, for example (0, 10), or rewards='bernoulli' if every reward is 0 or 1."
            )
        low, high = as_range("reward_range", reward_range)
        noise = float(noise) if is_number(noise) else noise
        if limits is None:
            margin = _margin(noise, high - low) if kind == "gaussian" else 0.0
            limits = (low - margin, high + margin)
        return cls(kind, (low, high), noise, as_range("reward_limits", limits), is_maximised)

    @property
    def scale(self) -> float:
        """Standardised units per unit of reward."""
        low, high = self.range
        return (STANDARD_RANGE[1] - STANDARD_RANGE[0]) / (high - low)

    @property
    def centre(self) -> float:
        """The reward that standardised units call zero."""
        return (self.range[0] + self.range[1]) / 2

    @property
    def sign(self) -> float:
        """Minus one if lower rewards are better."""
        return 1.0 if self.is_maximised else -1.0

    @property
    def standardised_noise(self) -> float | None:
        """The noise that a policy is told."""
        return None if self.noise is None else self.noise * self.scale

    def standardise(self, reward: object) -> float:
        """Check a reward and translate it to standardised units, where more is better.

        Raises:
            InputError: it is not a finite number, or none that this study can have.
        """
        return self.sign * (self._read(reward) - self.centre) * self.scale

    def restore(self, standardised: FloatVector | float) -> FloatVector | float:
        """Translate standardised arm means back to the user's units."""
        return self.sign * standardised / self.scale + self.centre

    def _read(self, reward: object) -> float:
        if self.kind == "bernoulli":
            return _read_yes_no(reward)
        if not is_number(reward) or not math.isfinite(float(reward)):  # type: ignore[arg-type]
            raise InputError(
                f"Expected a finite number; got reward={reward!r}. "
                "Leave a decision without reward rather than filling one in."
            )
        value = float(reward)  # type: ignore[arg-type]
        lowest, highest = self.limits
        if not lowest <= value <= highest:
            why, remedy = ("the limits of this study", "declare wider reward_limits in a new study")
            if self.kind == "bounded":
                why = "rewards of this study are bounded by its range"
                remedy = "declare a wider reward_range in a new study"
            raise InputError(
                f"Expected a reward from {lowest:g} to {highest:g} ({why}); got reward={reward!r}. "
                f"Check its unit, or {remedy}."
            )
        return value

    def _check_yes_no(self) -> None:
        if self.range != _YES_NO:
            raise ConfigurationError(
                f"Expected the range (0, 1) for bernoulli rewards; got reward_range={self.range!r}."
                " Leave it out."
            )
        if self.noise is not None:
            raise ConfigurationError(
                f"Expected no noise for bernoulli rewards; got reward_noise={self.noise!r}. Leave "
                "it out: how often an arm succeeds says how much rewards vary."
            )

    def _check_noise(self, noise: float) -> None:
        if not is_number(noise) or not 0 < noise < math.inf:
            raise ConfigurationError(
                f"Expected a positive, finite noise; got reward_noise={noise!r}. Give the standard "
                "deviation of a reward around its arm mean, or None to learn it."
            )
        width = self.range[1] - self.range[0]
        if not LEAST_NOISE * width <= noise <= MOST_NOISE * width:
            raise ConfigurationError(
                f"Expected a noise from {LEAST_NOISE:g} to {MOST_NOISE:g} times the width of the "
                f"reward range; got reward_noise={noise!r} for a width of {width:g}. "
                "Check the units of both."
            )

    def _check_limits(self) -> None:
        if self.kind != "gaussian" and self.limits != self.range:
            raise ConfigurationError(
                f"Expected the range {self.range} as limits of {self.kind} rewards; got "
                f"reward_limits={self.limits!r}. Leave them out, or use rewards='gaussian'."
            )
        if not (self.limits[0] <= self.range[0] and self.range[1] <= self.limits[1]):
            raise ConfigurationError(
                f"Expected limits around the range {self.range}; got "
                f"reward_limits={self.limits!r}. Widen them, or leave them out."
            )


def _check_kind(kind: object) -> None:
    if not isinstance(kind, str) or kind not in get_args(RewardKind):
        raise ConfigurationError(
            f"Expected rewards in {get_args(RewardKind)}; got rewards={kind!r}. Choose one of "
            "these."
        )


def _read_yes_no(reward: object) -> float:
    if is_truth(reward) or (is_number(reward) and float(reward) in _YES_NO):  # type: ignore[arg-type]
        return float(reward)  # type: ignore[arg-type]
    raise InputError(
        "Expected a reward of 0 or 1 (rewards of this study are bernoulli); got "
        f"reward={reward!r}. Give 1 for a success and 0 for a failure."
    )


def _margin(noise: object, width: float) -> float:
    """Choose how far outside the range a reward may lie: half the width if noise is not known."""
    if noise is None:
        return width / 2
    is_usable = is_number(noise) and 0 < float(noise) < math.inf  # type: ignore[arg-type]
    return MOST_DEVIATIONS * float(noise) if is_usable else 0.0  # type: ignore[arg-type]
