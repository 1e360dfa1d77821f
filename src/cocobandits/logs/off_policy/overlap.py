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
# A quarter of the estimate on one decision in a hundred: the next log may well say otherwise.
GOOD_TOP_SHARE = 0.25
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

    Attributes:
        effective_decisions: (Σw)² / Σw² over decisions.
        effective_users: the same over users, whose weights are summed first.
        mean_weight: over decisions; one is expected.
        largest_weight: of one decision.
        top_share: share of all weight in the 1 % of decisions with the largest.
        unsupported_share: share of the target's probability on arms of logged probability zero.
        smallest_probability: smallest logged probability of an arm where the target plays it.
    """

    effective_decisions: float
    effective_users: float
    mean_weight: float
    largest_weight: float
    top_share: float
    unsupported_share: float
    smallest_probability: float

    @property
    def verdict(self) -> Verdict:
        """Whether estimates can be trusted: "good", "thin", or "none" at all."""
        if self.effective_users < LEAST_USERS or self.unsupported_share > MOST_UNSUPPORTED:
            return "none"
        return "thin" if self._faults() or self.unsupported_share > GOOD_UNSUPPORTED else "good"

    @property
    def warning(self) -> str | None:
        """What is wrong and what to do about it; None if nothing is."""
        faults, is_known = self._faults(), self.verdict != "none"
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
        """List what is wrong with the weights themselves."""
        faults = []
        if self.effective_users < GOOD_USERS:
            faults.append(f"effectively {self.effective_users:.1f} users count")
        if not 1 / MOST_MEAN_WEIGHT <= self.mean_weight <= MOST_MEAN_WEIGHT:
            faults.append(f"weights average {self.mean_weight:.2g}, where 1 is expected")
        if self.top_share > GOOD_TOP_SHARE:
            faults.append(f"1 % of decisions hold {100 * self.top_share:.0f} % of the weight")
        return faults


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
    )


def _effective_number(weights: PerDecision) -> float:
    total = float(weights.sum())
    return total**2 / float(np.sum(weights**2)) if total > 0 else 0.0
