"""Three estimates of a mean reward from weighted decisions, with intervals that respect users.

Notation: decision i of n gave reward r with weight w = target probability / logged probability of
the chosen arm. Standard errors sum influences within a user before squaring, since decisions for
one person are not independent.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from cocobandits.logs.off_policy.reading import Array, Numbers, PerArm, PerDecision

CONFIDENCE = 0.95
# An integral with this many steps, up to this many deviations, gives five digits.
_NUM_ANGLES, _MOST_DEVIATIONS = 4001, 12.0


@dataclass(frozen=True)
class Estimate:
    """A mean reward per decision with its 95 % interval; NaN and infinite if nothing is known."""

    value: float
    low: float
    high: float
    standard_error: float

    @property
    def is_known(self) -> bool:
        """Whether the log says anything about it."""
        return math.isfinite(self.value)


UNKNOWN = Estimate(math.nan, -math.inf, math.inf, math.inf)


class Clusters(NamedTuple):
    """Whose decisions these are, and the share of all weight that each user has."""

    users: Numbers
    shares: Float[Array, " user"]

    @classmethod
    def of(cls, users: Numbers, weights: PerDecision) -> "Clusters":
        """Sum the weights of each user."""
        return cls(users, np.bincount(users, weights) / weights.sum())

    def estimate(self, value: float, influences: PerDecision) -> Estimate:
        """Put an interval around an estimate that errs by a mean of influences ψ.

        The standard error is √Σ_g (Σ_{i∈g} ψ_i / (1 - h_g))² / n over users g with shares h: the
        correction of Bell and McCaffrey (2002), which for snips is the exact change of the estimate
        without that user. The interval is Student's, with as many degrees of freedom as users
        effectively count, 1 / Σh², less one.
        """
        sums = np.bincount(self.users, influences) / (1 - self.shares)
        error = float(np.sqrt(np.sum(sums**2))) / len(influences)
        effective_users = 1 / float(np.sum(self.shares**2))
        margin = student_point(max(effective_users - 1, 1.0)) * error
        return Estimate(value, value - margin, value + margin, error)


def inverse_propensity(weights: PerDecision, rewards: PerDecision, clusters: Clusters) -> Estimate:
    """Estimate by Σ w r / n (Horvitz and Thompson 1952)."""
    return _mean(weights * rewards, clusters)


def self_normalised(weights: PerDecision, rewards: PerDecision, clusters: Clusters) -> Estimate:
    """Estimate by Σ w r / Σ w (Hájek); the delta method gives influences w (r - value) / mean w."""
    value = float(np.sum(weights * rewards) / np.sum(weights))
    return clusters.estimate(value, weights * (rewards - value) / np.mean(weights))


def doubly_robust(
    weights: PerDecision,
    residuals: PerDecision,
    predicted: PerArm,
    target: PerArm,
    clusters: Clusters,
) -> Estimate:
    """Estimate by the mean of Σ_a π(a) q(a) + w (r - q) (Dudík, Langford and Li 2011).

    `predicted` is q for every arm, `residuals` are r - q of the chosen arm.
    """
    return _mean(np.sum(target * predicted, axis=1) + weights * residuals, clusters)


def student_point(freedom: float) -> float:
    """Find t with P(|T| < t) = 0.95 for Student's T with real degrees of freedom ν.

    With T = √ν tan φ the density of the angle φ is proportional to cos(φ)^(ν-1).
    """
    reach = min(math.pi / 2, _MOST_DEVIATIONS / math.sqrt(freedom))
    angles = np.linspace(0.0, reach, _NUM_ANGLES)
    density = np.cos(angles) ** (freedom - 1)
    mass = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    return math.sqrt(freedom) * math.tan(np.interp(CONFIDENCE, mass / mass[-1], angles))


def _mean(values: PerDecision, clusters: Clusters) -> Estimate:
    value = float(values.mean())
    return clusters.estimate(value, values - value)
