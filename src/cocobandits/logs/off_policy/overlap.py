"""Does the log hold what the target would have done? Weights, and a verdict in plain words."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from cocobandits.logs.off_policy.reading import LoggedDecisions, PerArm, PerDecision

Verdict = Literal["good", "thin", "none"]

# Where the central limit theorem, on which intervals rest, is customarily trusted.
GOOD_USERS = 30.0
# A spread between users cannot be measured on fewer than two of them.
LEAST_USERS = 2.0
# Weights too large for the central limit theorem may hold this share of the expected squares.
GOOD_RARE_SHARE = 0.25
# What the log cannot tell moves ips by at most this share of the largest reward.
GOOD_UNSUPPORTED = 0.01
# Beyond half, an estimate depends more on its assumptions than on the rewards.
MOST_UNSUPPORTED = 0.5
# Weights have the mean one; a log in which they average half or twice of it is an odd one.
MOST_MEAN_WEIGHT = 2.0
# Sums of probabilities that ought to be zero differ from it by less.
_NOTHING = 1e-9
_COUNTED = "ips counts it as reward zero, snips as the average of the rest, dr as its model says"
_REMEDY = (
    "Wait for more users, log with a floor under every probability, or choose a target nearer to "
    "the log."
)


@dataclass(frozen=True)
class Overlap:
    """How far logged decisions can stand in for those of the target.

    The verdict rests on what the logged probabilities p promise of a weight, E w² = Σ_a π_a² / p_a,
    not on the arms that were drawn. A log that happens to hold many of the target's arms has large
    weights and a high `ips`: if it were trusted for that, intervals would miss the truth.

    Attributes:
        effective_decisions: (Σw)² / Σw² over decisions.
        effective_users: the same over users, whose weights are summed first.
        mean_weight: over decisions; one is expected.
        largest_weight: of one decision.
        top_share: share of all weight in the 1 % of decisions with the largest.
        unsupported_share: share of the target's probability on arms of logged probability zero.
        smallest_probability: smallest logged probability of an arm where the target plays it.
        expected_users: effective users, with expected squares of users' weights for squares.
        rare_share: share of Σ π²/p that is due to weights with w² above a thirtieth of it.
    """

    effective_decisions: float
    effective_users: float
    mean_weight: float
    largest_weight: float
    top_share: float
    unsupported_share: float
    smallest_probability: float
    expected_users: float
    rare_share: float

    @property
    def verdict(self) -> Verdict:
        """Whether estimates can be trusted: "good", "thin", or "none" at all."""
        if self.effective_users < LEAST_USERS or self.unsupported_share > MOST_UNSUPPORTED:
            return "none"
        is_thin = self._faults() or self.unsupported_share > GOOD_UNSUPPORTED
        return "thin" if is_thin else "good"

    @property
    def warning(self) -> str | None:
        """What is wrong and what to do about it; None if nothing is."""
        faults, is_known = self._faults() + self._oddities(), self.verdict != "none"
        if self.unsupported_share > _NOTHING:
            share = 100 * self.unsupported_share
            missed = f"{share:.3g} % of what the target plays had probability zero"
            faults.insert(0, f"{missed} ({_COUNTED})" if is_known else missed)
        if not faults:
            return None
        start = (
            "Take the estimates with care" if is_known else "The log says nothing of this target"
        )
        return f"{start}: {'; '.join(faults)}. {_REMEDY}"

    def _faults(self) -> list[str]:
        """List what is wrong with the weights that the target has, whichever arms are drawn."""
        faults = []
        if self.expected_users < GOOD_USERS:
            faults.append(f"effectively {self.expected_users:.1f} users can be expected to count")
        if self.rare_share > GOOD_RARE_SHARE:
            share = 100 * self.rare_share
            faults.append(f"rare weights make up {share:.0f} % of the expected squares")
        return faults

    def _oddities(self) -> list[str]:
        """List what is odd about the arms that were drawn, on which "good" may not depend."""
        oddities = []
        if self.effective_users < LEAST_USERS:
            oddities.append(f"effectively {self.effective_users:.1f} users count")
        if not 1 / MOST_MEAN_WEIGHT <= self.mean_weight <= MOST_MEAN_WEIGHT:
            oddities.append(f"weights average {self.mean_weight:.2g}, where 1 is expected")
        return oddities


def measure_overlap(logged: LoggedDecisions, target: PerArm, weights: PerDecision) -> Overlap:
    """Describe the weights of a target on a log."""
    by_user = np.bincount(logged.users, weights)
    num_top = -(-len(weights) // 100)
    total = weights.sum()
    is_played = target > 0
    return Overlap(
        _effective_number(weights),
        _effective_number(by_user),
        float(weights.mean()),
        float(weights.max()),
        float(np.sort(weights)[-num_top:].sum() / total) if total > 0 else 0.0,
        float(np.sum(target[logged.probabilities == 0]) / len(target)),
        float(logged.probabilities[is_played].min()),
        *_promise(logged, target),
    )


def _promise(logged: LoggedDecisions, target: PerArm) -> tuple[float, float]:
    """Compute `expected_users` and `rare_share`.

    Given the past, a weight has the mean s = Σ π over possible arms and the variance Σ π²/p - s²;
    deviations of one user's weights are uncorrelated, so their variances add up.
    """
    is_possible = logged.probabilities > 0
    weights = np.where(is_possible, target / np.where(is_possible, logged.probabilities, 1.0), 0.0)
    squares, means = target * weights, np.sum(target * is_possible, axis=1)
    variances = np.bincount(logged.users, squares.sum(axis=1) - means**2)
    total, sums = squares.sum(), np.bincount(logged.users, means)
    if total == 0:
        return 0.0, 0.0
    is_rare = weights**2 > total / GOOD_USERS
    expected = float(sums.sum() ** 2 / np.sum(variances + sums**2))
    return expected, float(squares[is_rare].sum() / total)


def _effective_number(weights: PerDecision) -> float:
    total = float(weights.sum())
    return total**2 / float(np.sum(weights**2)) if total > 0 else 0.0
