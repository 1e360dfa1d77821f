"""Rules: criteria on the results of a run, as data (paper, "Results").

A rule is a frozen dataclass: it names its policies, holds its criterion in words, and returns a
`Finding`. A finding is undecided (None) for a single seed, or if the 95 % interval over seeds
reaches to both sides of the limit: too little evidence is not evidence against.

The first rules are the readings of an ordinary careful reader of the paper, then come strict
readings of the same words, then rules for our own targets, which the mean over the seeds decides.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from cocobandits.experiments.estimates import Estimate, around, estimate, number, percent, ratio
from cocobandits.runs.results import ORACLE, Key, Results, Values, fifths, slopes

ALONE = "ind-ts"
THIRD_ARM = 2
# Standard errors of a paired difference that a turn of a curve must exceed.
_TURN_ERRORS = 2
_DECIDED = "Decided by the mean over the seeds; the bracket is its 95 % interval."
# Arrays with a row per seed.
_QUANTITIES: dict[str, Callable[[Results, str, str], Values]] = {
    "total": Results.total_regret,
    "second half": Results.second_half_regret,
    "steps": lambda results, *key: results.regrets[key],
    "multi-task": Results.multitask_regret,
    "evaluation": lambda results, *key: results.evaluations[key],
    "third arm": lambda results, *key: results.share_of_arm(*key, THIRD_ARM),
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
        criterion: in one sentence; braces hold the rule, or the label of the other policy.
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
        return self.criterion.format(rule=self, other=results.label(self.other))

    def is_decidable(self, results: Results, environment: str) -> bool:
        """Check that the results have all that the criterion is computed from."""
        try:
            self._values(results, environment)
        except KeyError:
            return False
        return True

    def find(self, results: Results, environment: str) -> Finding:
        """Apply the criterion; a single seed decides nothing."""
        text, holds = self._measure(*self._values(results, environment))
        labels = {"policy": results.label(self.policy), "other": results.label(self.other)}
        shown = text.format(seeds=results.seeds, **labels)
        return Finding(shown, holds if len(results.seeds) > 1 else None)

    def _values(self, results: Results, environment: str) -> list[Values]:
        return [_QUANTITIES[self.quantity](results, *key) for key in self._keys(environment)]

    def _keys(self, environment: str) -> list[Key]:
        policies = (self.policy, self.other, *self.needs)
        return [(environment, policy) for policy in policies if policy]


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
        change = estimate(last - first)
        text = (
            f"{{policy}}'s excess over the oracle is {percent(first.mean())} of Ind-TS's in the "
            f"first fifth and {percent(last.mean())} in the last: {change.percent(unit='points')}"
        )
        # Without an excess of Ind-TS, the share means nothing.
        return text, change.is_below() if min(part.mean() for part in excess) > 0 else None


class Linear(Rule):
    exponent = 0.9
    # The exponent of a learner whose regret per step vanishes like 1/√step.
    excluded = 0.5
    quantity = "multi-task"
    criterion = (
        "Linear: a power law fitted to the multi-task regret of the second half of the steps has "
        f"an exponent of at least {exponent}, and its 95 % interval (jackknife over seeds) "
        f"excludes {excluded}."
    )

    def _measure(self, mine: Values) -> Measured:
        fitted = _power(mine)
        holds = fitted.mean >= self.exponent and fitted.low > self.excluded
        text = f"{{policy}}'s multi-task regret grows like step^{fitted.with_interval(2)}"
        return text, holds or (False if fitted.high < self.exponent else None)


class Less(Rule):
    criterion = "Less: the paired difference in total regret is below zero by its 95 % interval."

    def _measure(self, mine: Values, theirs: Values) -> Measured:
        gap, losses = estimate(mine - theirs), [number(each.mean()) for each in (mine, theirs)]
        text = f"{{policy}} loses {losses[0]}, {{other}} {losses[1]}: {gap.with_interval()}"
        return text, gap.is_below()


class Close(Rule):
    limit = 20
    needs = (ALONE, ORACLE)
    criterion = (
        f"Close: the gap in total regret is at most {limit} % of the distance from Ind-TS to the "
        "oracle, in either direction, by its 95 % interval."
    )

    def _measure(self, mine: Values, theirs: Values, alone: Values, oracle: Values) -> Measured:
        share = ratio(theirs - mine, alone - oracle)
        text = (
            f"{{policy}} is {share.percent()} of the distance from Ind-TS to the oracle below "
            f"{{other}}, which is {percent(ratio(theirs - mine, theirs).mean)} of {{other}}'s "
            "regret"
        )
        return text, _is_within(share, self.limit / 100)


class Approaches(Rule):
    name, end, limit = "Approaches", "the last fifth of the rounds", 50
    quantity = "evaluation"
    needs = (ORACLE,)
    criterion = (
        "{rule.name}: from the first round to {rule.end}, more than {rule.limit} % of the gap "
        "between the evaluation regret and the oracle's is closed, by its 95 % interval."
    )

    def _measure(self, mine: Values, oracle: Values) -> Measured:
        gaps = mine - oracle
        closed = ratio(gaps[:, 0] - self._late(gaps).mean(axis=1), gaps[:, 0])
        text = f"{{policy}} closes {closed.percent()} of its gap in evaluation regret"
        return text, closed.is_above(self.limit / 100) if gaps[:, 0].mean() > 0 else None

    def _late(self, gaps: Values) -> Values:
        return gaps[:, fifths(gaps.shape[1])[-1]]


class Falls(Rule):
    quantity = "evaluation"
    criterion = (
        "Falls: the lowest point of the mean evaluation regret is not the first round, which lies "
        f"above it by more than {_TURN_ERRORS} standard errors of the paired difference."
    )

    def _measure(self, mine: Values) -> Measured:
        lowest = int(mine.mean(axis=0).argmin())
        fall, subject = estimate(mine[:, 0] - mine[:, lowest]), "{policy}'s evaluation regret"
        if lowest == 0:
            return f"{subject} is lowest in round 0: it never falls", False
        text = f"{subject} falls by {fall.with_error(2)} to its lowest point in round {lowest}"
        return text, fall.mean > _TURN_ERRORS * fall.error or None


class Rises(Rule):
    quantity = "evaluation"
    criterion = (
        "Rises: the lowest point is not in the last fifth of the rounds, and the last round lies "
        f"above it by more than {_TURN_ERRORS} standard errors."
    )

    def _measure(self, mine: Values) -> Measured:
        lowest, last = int(mine.mean(axis=0).argmin()), mine.shape[1] - 1
        rise = estimate(mine[:, -1] - mine[:, lowest])
        is_before_end = lowest < fifths(last + 1)[-1].start
        text = f"it rises by {rise.with_error(2)} from round {lowest} to the last, {last}"
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
        gap, shown = estimate(shares[0] - shares[1]), [percent(each.mean()) for each in shares]
        text = (
            f"in the first fifth {{policy}} plays an arm that is not best in {shown[0]} of the "
            f"steps, {{other}} in {shown[1]}: {gap.percent(1, 'points')}"
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
        return text, estimate(last - 1 / 3 * first).is_below() if first.mean() > 0 else None


class SlopeStays(Rule):
    limit = 25
    quantity = "multi-task"
    criterion = (
        "Linear, strictly: multi-task regret rises, and its slope over the second half of the "
        f"steps is within {limit} % of its slope between the first fifth and the half, by 95 % "
        "intervals."
    )

    def _measure(self, mine: Values) -> Measured:
        num_steps, tolerance = mine.shape[1], self.limit / 100
        early = slopes(mine, slice(num_steps // 5, num_steps // 2))
        late = slopes(mine, slice(num_steps // 2, num_steps))
        # Each has to be above zero.
        parts = (early, (1 + tolerance) * early - late, late - (1 - tolerance) * early)
        shown = [number(slope.mean(), 3) for slope in (early, late)]
        text = f"{{policy}} loses {shown[0]} per step before the half and {shown[1]} after it"
        return text, _all_hold(*(estimate(part).is_above() for part in parts))


class ApproachesStrictly(Approaches):
    name, end, limit = "Approaches, strictly", "the last round", 80

    def _late(self, gaps: Values) -> Values:
        return gaps[:, -1:]


class WithinShare(Rule):
    limit = 20
    criterion = (
        f"Close, strictly: the paired difference in total regret is within ± {limit} % of the "
        "smaller of the two mean total regrets, by its 95 % interval."
    )

    def _measure(self, mine: Values, theirs: Values) -> Measured:
        allowed = self.limit / 100 * min(float(mine.mean()), float(theirs.mean()))
        gap = estimate(mine - theirs)
        text = f"{{policy}} minus {{other}} is {gap.with_interval()}, allowed ± {number(allowed)}"
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
        return text, estimate(mine[:, 0] - mine[:, -1]).is_above()


class ThirdArmExceeds(Rule):
    quantity = "third arm"
    criterion = ThirdArmFades.criterion

    def _measure(self, mine: Values, theirs: Values) -> Measured:
        gap = estimate(mine[:, 0] - theirs[:, 0])
        return f"early, {{policy}} minus {{other}} is {gap.percent(1, 'points')}", gap.is_above()


@dataclass(frozen=True)
class ShareOf(Rule):
    limit: float = 1.0
    relation: str = "at most"

    _LIMITED = f"is {{rule.relation}} {{rule.limit:g}}. {_DECIDED}"
    criterion = f"Mean total regret over {{other}}'s {_LIMITED}"
    subject: ClassVar[str] = "{policy} over {other}"

    def _measure(self, mine: Values, theirs: Values) -> Measured:
        # Compared without dividing: the other policy may lose nothing.
        mean, allowed = mine.mean(), self.limit * theirs.mean()
        shown = f"{ratio(mine, theirs).with_interval(2)}, {estimate(mine).with_error()}"
        text = f"{self.subject} is {shown} of {estimate(theirs).with_error()}"
        return text, bool(mean <= allowed if self.relation == "at most" else mean < allowed)


class LateShareOf(ShareOf):
    quantity = "second half"
    criterion = f"Mean regret in the second half of the steps over {{other}}'s {ShareOf._LIMITED}"
    subject = "{policy} over {other}, second half"


class ShareOfEnvironment(ShareOf):
    """Compares one policy in two environments; the other one is named where a policy would be."""

    criterion = f"Mean total regret over that in {{other}} {ShareOf._LIMITED}"
    subject = "{policy}'s regret over that in {other}"

    def _keys(self, environment: str) -> list[Key]:
        return [(environment, self.policy), (self.other, self.policy)]


class WorstSeed(ShareOf):
    criterion = "On no seed is total regret above {rule.limit:g} times {other}'s."

    def _measure(self, mine: Values, theirs: Values) -> Measured:
        worst = int(np.argmax(mine - self.limit * theirs))
        mean, other = float(mine[worst]), float(theirs[worst])
        quotient = number(mean / other, 2) if other else "∞"
        text = f"{{seeds[{worst}]}}, {quotient}, {number(mean)} of {number(other)}"
        return f"on its worst seed, {text}", mean <= self.limit * other


class NotWorse(Rule):
    criterion = f"The paired difference in total regret is at most zero on average. {_DECIDED}"

    def _measure(self, mine: Values, theirs: Values) -> Measured:
        gap = estimate(mine - theirs)
        return f"{{policy}} minus {{other}} is {gap.with_interval()}", gap.mean <= 0


def _end_slopes(values: Values) -> list[Values]:
    return [slopes(values, fifths(values.shape[1])[end]) for end in (0, -1)]


def _all_hold(*outcomes: bool | None) -> bool | None:
    """Combine outcomes: one False outweighs undecided ones."""
    return False if False in outcomes else None if None in outcomes else True


def _is_within(value: Estimate, limit: float) -> bool | None:
    return _all_hold(value.is_below(limit), value.is_above(-limit))


def _linearised_ratio(first: Values, second: Values) -> Values:
    """Return one value per seed whose mean is the ratio of means, with its first-order error."""
    below = second.mean()
    if not below:
        return np.full_like(first, np.nan)
    share = first.mean() / below
    return share + (first - share * second) / below


def _power(curves: Values) -> Estimate:
    """Fit the exponent of the mean curve; its interval is the jackknife's over seeds."""
    num_seeds = len(curves)
    left_out = [_exponent(np.delete(curves, n, axis=0)) for n in range(num_seeds) if num_seeds > 1]
    error = math.sqrt((num_seeds - 1) * float(np.var(left_out))) if left_out else math.nan
    return around(_exponent(curves), error, num_seeds)


def _exponent(curves: Values) -> float:
    """Regress log regret on log step over the second half; NaN if the mean is not positive."""
    curve = curves.mean(axis=0)
    late = slice(len(curve) // 2, None)
    if len(curve) < 4 or curve[late].min() <= 0:
        return math.nan
    steps = np.arange(1, len(curve) + 1)[late]
    return float(np.polyfit(np.log(steps), np.log(curve[late]), 1)[0])
