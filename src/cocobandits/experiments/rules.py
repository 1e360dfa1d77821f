"""Rules: criteria on the results of a run, as data (paper, "Results").

A rule is a frozen dataclass: it names its policies, holds its criterion in words, and returns a
`Finding`. A finding is undecided (None) for a single seed, or if the 95 % interval over seeds
reaches to both sides of the limit: too little evidence is not evidence against.

The first rules are the readings of an ordinary careful reader of the paper, then come strict
readings of the same words, then rules for our own targets, which the mean over the seeds decides.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cocobandits.experiments.estimates import (
    Difference,
    difference,
    estimate,
    number,
    percent,
    points,
    ratio,
    t_quantile,
)
from cocobandits.runs.results import ORACLE, Key, Results, Values, fifths, slopes

ALONE = "ind-ts"
THIRD_ARM = 2
MIN_SEEDS = 2
# Standard errors of a paired difference that a turn of a curve must exceed.
_TURN_ERRORS = 2.0
_DECIDED = "Decided by the mean over the seeds; the bracket is its 95 % interval."
# The part of results that a quantity comes from, and the quantity, with a row per seed.
_QUANTITIES: dict[str, tuple[str, Callable[[Results, str, str], Values]]] = {
    "total": ("", Results.total_regret),
    "second half": ("", Results.second_half_regret),
    "steps": ("regrets", lambda results, *key: results.regrets[key]),
    "multi-task": ("regrets", Results.multitask_regret),
    "evaluation": ("evaluations", lambda results, *key: results.evaluations[key]),
    "third arm": ("arms", lambda results, *key: results.share_of_arm(*key, THIRD_ARM)),
}

Measured = tuple[str, bool | None]


class Finding(NamedTuple):
    """The measurement of one rule, and whether the rule holds; None if undecided."""

    text: str
    holds: bool | None


@dataclass(frozen=True)
class Rule:
    """A criterion on one policy, or on two.

    Attributes:
        policy: the policy that the rule is about.
        other: the policy it is compared with, if any.
        criterion: in one sentence; braces hold fields of the rule, or labels of its policies.
        quantity: that is measured; one of `_QUANTITIES`.
        needs: further policies that it is measured for.
    """

    policy: str
    other: str = ""

    criterion: ClassVar[str]
    quantity: ClassVar[str] = "total"
    needs: ClassVar[tuple[str, ...]] = ()

    # Applies the criterion to the quantity of the policy, of the other one and of those it needs.
    _measure: ClassVar[Callable[..., Measured]]

    def words(self, results: Results) -> str:
        """Write the criterion."""
        return self.criterion.format(**vars(self) | self._names(results))

    def is_decidable(self, results: Results, environment: str) -> bool:
        """Check that the results have all that the criterion is computed from."""
        part, _ = _QUANTITIES[self.quantity]
        keys = self._keys(environment)
        if self.quantity == "multi-task":
            keys.append((environment, ORACLE))
        return all(
            results.has(*key) and (not part or key in getattr(results, part)) for key in keys
        )

    def find(self, results: Results, environment: str) -> Finding:
        """Apply the criterion; a single seed decides nothing."""
        _, read = _QUANTITIES[self.quantity]
        text, holds = self._measure(*(read(results, *key) for key in self._keys(environment)))
        is_enough = len(results.seeds) >= MIN_SEEDS
        return Finding(text.format(**self._names(results)), holds if is_enough else None)

    def _keys(self, environment: str) -> list[Key]:
        policies = (self.policy, self.other, *self.needs)
        return [(environment, policy) for policy in policies if policy]

    def _names(self, results: Results) -> dict[str, Any]:
        labels = {"policy": results.label(self.policy), "other": results.label(self.other)}
        return labels | {"seeds": results.seeds}


class Flattens(Rule):
    quantity = "multi-task"
    needs = (ALONE,)
    criterion = (
        "Flattens: the excess regret over the oracle, as a share of Ind-TS's excess, falls from "
        "the first fifth of the steps to the last, by its 95 % interval."
    )

    def _measure(self, mine: Values, alone: Values) -> Measured:
        excess = _end_slopes(alone)
        first, last = map(_linearised_ratio, _end_slopes(mine), excess)
        change = difference(last, first)
        text = (
            f"{{policy}}'s excess over the oracle is {percent(first.mean())} of Ind-TS's in the "
            f"first fifth and {percent(last.mean())} in the last: {points(change)}"
        )
        # Without an excess of Ind-TS, the share means nothing.
        return text, change.is_below() if min(part.mean() for part in excess) > 0 else None


@dataclass(frozen=True)
class Linear(Rule):
    exponent: float = 0.9
    # The exponent of a learner whose regret per step vanishes like 1/√step.
    excluded: float = 0.5

    quantity = "multi-task"
    criterion = (
        "Linear: a power law fitted to the multi-task regret of the second half of the steps has "
        "an exponent of at least {exponent:g}, and its 95 % interval (jackknife over seeds) "
        "excludes {excluded:g}."
    )

    def _measure(self, mine: Values) -> Measured:
        fitted = _power(mine)
        holds = fitted.mean >= self.exponent and fitted.low > self.excluded
        text = f"{{policy}}'s multi-task regret grows like step^{fitted.show(2)}"
        return text, holds or (False if fitted.high < self.exponent else None)


class Less(Rule):
    criterion = "Less: the paired difference in total regret is below zero by its 95 % interval."

    def _measure(self, mine: Values, theirs: Values) -> Measured:
        gap, losses = difference(mine, theirs), (number(mine.mean()), number(theirs.mean()))
        return f"{{policy}} loses {losses[0]}, {{other}} {losses[1]}: {gap.show()}", gap.is_below()


@dataclass(frozen=True)
class Close(Rule):
    limit: float = 20

    needs = (ALONE, ORACLE)
    criterion = (
        "Close: the gap in total regret is at most {limit:g} % of the distance from Ind-TS to the "
        "oracle, in either direction, by its 95 % interval."
    )

    def _measure(self, mine: Values, theirs: Values, alone: Values, oracle: Values) -> Measured:
        share = ratio(theirs - mine, alone - oracle)
        text = (
            f"{{policy}} is {points(share, unit='%')} of the distance from Ind-TS to the oracle "
            f"below {{other}}, which is {percent(ratio(theirs - mine, theirs).mean)} of "
            "{other}'s regret"
        )
        return text, _is_within(share, self.limit / 100)


@dataclass(frozen=True)
class Approaches(Rule):
    limit: float = 50
    end: str = "the last fifth of the rounds"
    name: str = "Approaches"

    quantity = "evaluation"
    needs = (ORACLE,)
    criterion = (
        "{name}: from the first round to {end}, more than {limit:g} % of the gap between the "
        "evaluation regret and the oracle's is closed, by its 95 % interval."
    )

    def _measure(self, mine: Values, oracle: Values) -> Measured:
        gaps = mine - oracle
        late = gaps[:, -1:] if self.end == "the last round" else gaps[:, fifths(gaps.shape[1])[-1]]
        closed = ratio(gaps[:, 0] - late.mean(axis=1), gaps[:, 0])
        text = f"{{policy}} closes {points(closed, unit='%')} of its gap in evaluation regret"
        return text, closed.is_above(self.limit / 100) if gaps[:, 0].mean() > 0 else None


class Falls(Rule):
    quantity = "evaluation"
    criterion = (
        "Falls: the lowest point of the mean evaluation regret is not the first round, which lies "
        "above it by more than 2 standard errors of the paired difference."
    )

    def _measure(self, mine: Values) -> Measured:
        lowest = int(mine.mean(axis=0).argmin())
        fall, subject = estimate(mine[:, 0] - mine[:, lowest]), "{policy}'s evaluation regret"
        if lowest == 0:
            return f"{subject} is lowest in round 0: it never falls", False
        text = f"{subject} falls by {fall.show(2)} to its lowest point in round {lowest}"
        return text, fall.mean > _TURN_ERRORS * fall.error or None


class Rises(Rule):
    quantity = "evaluation"
    criterion = (
        "Rises: the lowest point is not in the last fifth of the rounds, and the last round lies "
        "above it by more than 2 standard errors."
    )

    def _measure(self, mine: Values) -> Measured:
        lowest, last = int(mine.mean(axis=0).argmin()), mine.shape[1] - 1
        rise = estimate(mine[:, -1] - mine[:, lowest])
        is_before_end = lowest < fifths(last + 1)[-1].start
        text = f"it rises by {rise.show(2)} from round {lowest} to the last, {last}"
        return text, is_before_end and (rise.mean > _TURN_ERRORS * rise.error or None)


class ExploresMore(Rule):
    quantity = "steps"
    criterion = (
        "Explores: in the first fifth of the steps, it plays an arm that is not the user's best "
        "more often than the other policy, by the 95 % interval of the paired difference."
    )

    def _measure(self, mine: Values, theirs: Values) -> Measured:
        first = fifths(mine.shape[1])[0]
        shares = [(regrets[:, first] > 0).mean(axis=1) for regrets in (mine, theirs)]
        gap, shown = difference(*shares), [percent(share.mean()) for share in shares]
        text = (
            f"in the first fifth {{policy}} plays an arm that is not best in {shown[0]} of the "
            f"steps, {{other}} in {shown[1]}: {points(gap, digits=1)}"
        )
        return text, gap.is_above()


class SlopeDrops(Rule):
    quantity = "multi-task"
    criterion = (
        "Flattens, strictly: multi-task regret rises less than a third as fast in the last fifth "
        "of the steps as in the first, by its 95 % interval."
    )

    def _measure(self, mine: Values) -> Measured:
        first, last = _end_slopes(mine)
        shown = [number(slope.mean(), 3) for slope in (first, last)]
        text = f"{{policy}} loses {shown[0]} per step in the first fifth and {shown[1]} in the last"
        # A policy that starts like the oracle has nothing to flatten.
        return text, difference(last, 1 / 3 * first).is_below() if first.mean() > 0 else None


@dataclass(frozen=True)
class SlopeStays(Rule):
    limit: float = 25

    quantity = "multi-task"
    criterion = (
        "Linear, strictly: multi-task regret rises, and its slope over the second half of the "
        "steps is within {limit:g} % of its slope between the first fifth and the half, by 95 % "
        "intervals."
    )

    def _measure(self, mine: Values) -> Measured:
        num_steps, tolerance = mine.shape[1], self.limit / 100
        early = slopes(mine, slice(num_steps // 5, num_steps // 2))
        late = slopes(mine, slice(num_steps // 2, num_steps))
        limits = (
            difference(0.0 * early, early),
            difference(late, (1 + tolerance) * early),
            difference((1 - tolerance) * early, late),
        )
        shown = [number(slope.mean(), 3) for slope in (early, late)]
        text = f"{{policy}} loses {shown[0]} per step before the half and {shown[1]} after it"
        return text, _all_hold(limit.is_below() for limit in limits)


@dataclass(frozen=True)
class WithinShare(Rule):
    limit: float = 20

    criterion = (
        "Close, strictly: the paired difference in total regret is within ± {limit:g} % of the "
        "smaller of the two mean total regrets, by its 95 % interval."
    )

    def _measure(self, mine: Values, theirs: Values) -> Measured:
        allowed = self.limit / 100 * min(float(mine.mean()), float(theirs.mean()))
        gap = difference(mine, theirs)
        text = f"{{policy}} minus {{other}} is {gap.show()}, allowed ± {number(allowed)}"
        return text, _is_within(gap, allowed)


class ThirdArmFades(Rule):
    quantity = "third arm"
    criterion = (
        "Explores, strictly: the share of the third arm, which is never best here, is higher in "
        "GIDS's first fifth of the steps than in its last, and than in NPM-TS's first, by 95 % "
        "intervals."
    )

    def _measure(self, mine: Values) -> Measured:
        early, late = (percent(float(mine[:, part].mean()), 1) for part in (0, -1))
        text = f"{{policy}} plays the third arm in {early} of the first fifth, {late} of the last"
        return text, difference(mine[:, 0], mine[:, -1]).is_above()


class ThirdArmExceeds(Rule):
    quantity = "third arm"
    criterion = ThirdArmFades.criterion

    def _measure(self, mine: Values, theirs: Values) -> Measured:
        gap = difference(mine[:, 0], theirs[:, 0])
        return f"early, {{policy}} minus {{other}} is {points(gap, digits=1)}", gap.is_above()


@dataclass(frozen=True)
class ShareOf(Rule):
    limit: float = 1.0
    relation: str = "at most"

    criterion = f"Mean total regret over {{other}}'s is {{relation}} {{limit:g}}. {_DECIDED}"
    subject: ClassVar[str] = "{policy} over {other}"

    def _measure(self, mine: Values, theirs: Values) -> Measured:
        # Compared without dividing: the other policy may lose nothing.
        mean, allowed = mine.mean(), self.limit * theirs.mean()
        shown = f"{ratio(mine, theirs).show(2)}, {estimate(mine).show()}"
        text = f"{self.subject} is {shown} of {estimate(theirs).show()}"
        return text, bool(mean <= allowed if self.relation == "at most" else mean < allowed)


class LateShareOf(ShareOf):
    quantity = "second half"
    criterion = (
        "Mean regret in the second half of the steps over {other}'s is {relation} {limit:g}. "
        + _DECIDED
    )
    subject = "{policy} over {other}, second half"


class ShareOfEnvironment(ShareOf):
    """Compares one policy in two environments; the other one is named in place of a policy."""

    criterion = f"Mean total regret over that in {{other}} is {{relation}} {{limit:g}}. {_DECIDED}"
    subject = "{policy}'s regret over that in {other}"

    def _keys(self, environment: str) -> list[Key]:
        return [(environment, self.policy), (self.other, self.policy)]


@dataclass(frozen=True)
class WorstSeed(Rule):
    limit: float = 1.0

    criterion = "On no seed is total regret above {limit:g} times {other}'s."

    def _measure(self, mine: Values, theirs: Values) -> Measured:
        worst = int(np.argmax(mine - self.limit * theirs))
        mean, other = float(mine[worst]), float(theirs[worst])
        quotient = number(mean / other, 2) if other else "∞"
        text = f"{{seeds[{worst}]}}, {quotient}, {number(mean)} of {number(other)}"
        return f"on its worst seed, {text}", mean <= self.limit * other


class NotWorse(Rule):
    criterion = f"The paired difference in total regret is at most zero on average. {_DECIDED}"

    def _measure(self, mine: Values, theirs: Values) -> Measured:
        gap = difference(mine, theirs)
        return f"{{policy}} minus {{other}} is {gap.show()}", gap.mean <= 0


def _end_slopes(values: Values) -> list[Values]:
    return [slopes(values, fifths(values.shape[1])[end]) for end in (0, -1)]


def _all_hold(outcomes: Iterable[bool | None]) -> bool | None:
    """Combine outcomes: one False outweighs undecided ones."""
    found = set(outcomes)
    return False if False in found else None if None in found else True


def _is_within(value: Difference, limit: float) -> bool | None:
    return _all_hold((value.is_below(limit), value.is_above(-limit)))


def _linearised_ratio(first: Values, second: Values) -> Values:
    """Return one value per seed whose mean is the ratio of means, with its first-order error."""
    below = second.mean()
    if not below:
        return np.full_like(first, np.nan)
    share = first.mean() / below
    return share + (first - share * second) / below


def _power(curves: Values) -> Difference:
    """Fit the exponent of the mean curve; its interval is the jackknife's over seeds."""
    exponent, num_seeds = _exponent(curves), len(curves)
    if num_seeds < MIN_SEEDS:
        return Difference(exponent, math.nan, math.nan, math.nan)
    left_out = [_exponent(np.delete(curves, seed, axis=0)) for seed in range(num_seeds)]
    error = math.sqrt((num_seeds - 1) * float(np.var(left_out)))
    reach = t_quantile(num_seeds - 1) * error
    return Difference(exponent, error, exponent - reach, exponent + reach)


def _exponent(curves: Values) -> float:
    """Regress log regret on log step over the second half; NaN if the mean is not positive."""
    curve = curves.mean(axis=0)
    late = slice(len(curve) // 2, None)
    if len(curve) < 4 or curve[late].min() <= 0:
        return math.nan
    steps = np.arange(1, len(curve) + 1)[late]
    return float(np.polyfit(np.log(steps), np.log(curve[late]), 1)[0])
