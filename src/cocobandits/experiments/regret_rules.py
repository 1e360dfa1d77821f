"""Rules about regret during learning: flattens, grows linearly, is lower, is close.

`Flattens`, `Linear`, `Less` and `Close` are the readings of an ordinary careful reader of the
paper. `SlopeDrops`, `SlopeStays` and `WithinShare` are the strict readings of the same words.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cocobandits.experiments.estimates import (
    Difference,
    Values,
    difference,
    number,
    percent,
    points,
    ratio,
    t_quantile,
)
from cocobandits.experiments.measures import ORACLE, Measures, fifths, slopes
from cocobandits.experiments.rules import Finding, Rule, all_hold

ALONE = "ind-ts"


@dataclass(frozen=True)
class Flattens(Rule):
    """Regret beyond the oracle's shrinks relative to that of Ind-TS, which shares nothing."""

    also_needs: ClassVar[tuple[str, ...]] = (ORACLE, ALONE)
    words: ClassVar[str] = (
        "Flattens: the excess regret over the oracle, as a share of Ind-TS's excess, falls from "
        "the first fifth of the steps to the last, by its 95 % interval."
    )

    def measure(self, measures: Measures, environment: str) -> Finding:
        """Compare the two shares; their errors are those of linearised ratios."""
        mine = measures.multitask_regret(environment, self.policy)
        theirs = measures.multitask_regret(environment, ALONE)
        parts = fifths(mine.shape[1])
        first, last = (
            _linearised_ratio(slopes(mine, part), slopes(theirs, part))
            for part in (parts[0], parts[-1])
        )
        change = difference(last, first)
        is_behind = all(slopes(theirs, part).mean() > 0 for part in (parts[0], parts[-1]))
        text = (
            f"{self.label}'s excess over the oracle is {percent(first.mean())} of Ind-TS's in the "
            f"first fifth and {percent(last.mean())} in the last: {points(change)}"
        )
        # Without an excess of Ind-TS's own, the share means nothing.
        return Finding(text, change.is_below() if is_behind else None)


@dataclass(frozen=True)
class Linear(Rule):
    """Multi-task regret grows like a power of the step that is close to one."""

    exponent: float = 0.9
    # The exponent of a learner whose regret per step vanishes like 1/√step.
    excluded: float = 0.5

    also_needs: ClassVar[tuple[str, ...]] = (ORACLE,)

    @property
    def words(self) -> str:
        """The criterion in one sentence."""
        return (
            "Linear: a power law fitted to the multi-task regret of the second half of the steps "
            f"has an exponent of at least {self.exponent:g}, and its 95 % interval (jackknife over "
            f"seeds) excludes {self.excluded:g}."
        )

    def measure(self, measures: Measures, environment: str) -> Finding:
        """Fit the mean curve; a curve that is not positive has no exponent."""
        fitted = _power(measures.multitask_regret(environment, self.policy))
        text = f"{self.label}'s multi-task regret grows like step^{fitted.show(2)}"
        if fitted.mean >= self.exponent and fitted.low > self.excluded:
            return Finding(text, True)
        return Finding(text, False if fitted.high < self.exponent else None)


@dataclass(frozen=True)
class Less(Rule):
    """One policy has a lower total regret than another; the oracle's would cancel out."""

    words: ClassVar[str] = (
        "Less: the paired difference in total regret is below zero by its 95 % interval."
    )

    def measure(self, measures: Measures, environment: str) -> Finding:
        """Compare the totals seed by seed."""
        mine, theirs = (
            measures.total_regret(environment, name) for name in (self.policy, self.other)
        )
        gap = difference(mine, theirs)
        text = (
            f"{self.label} loses {number(mine.mean())}, {self.other_label} {number(theirs.mean())}:"
            f" {gap.show()}"
        )
        return Finding(text, gap.is_below())


@dataclass(frozen=True)
class Close(Rule):
    """The gap between two policies is small on the scale from Ind-TS to the oracle."""

    share: float = 0.2

    also_needs: ClassVar[tuple[str, ...]] = (ORACLE, ALONE)

    @property
    def words(self) -> str:
        """The criterion in one sentence."""
        return (
            "Close: the gap in total regret is at most "
            f"{percent(self.share)} of the distance from Ind-TS to the oracle, in either "
            "direction, by its 95 % interval."
        )

    def measure(self, measures: Measures, environment: str) -> Finding:
        """Compare the gap with the distance."""
        total = {name: measures.total_regret(environment, name) for name in self.policies}
        gap = total[self.other] - total[self.policy]
        share = ratio(gap, total[ALONE] - total[ORACLE])
        of_other = percent(ratio(gap, total[self.other]).mean)
        text = (
            f"{self.label} is {points(share, unit='%')} of the distance from Ind-TS to the oracle "
            f"below {self.other_label}, which is {of_other} of {self.other_label}'s regret"
        )
        return Finding(text, all_hold((share.is_below(self.share), share.is_above(-self.share))))


@dataclass(frozen=True)
class SlopeDrops(Rule):
    """Strict: multi-task regret rises much more slowly at the end than at the start."""

    share: float = 1 / 3

    also_needs: ClassVar[tuple[str, ...]] = (ORACLE,)
    words: ClassVar[str] = (
        "Flattens, strictly: multi-task regret rises less than a third as fast in the last fifth "
        "of the steps as in the first, by its 95 % interval."
    )

    def measure(self, measures: Measures, environment: str) -> Finding:
        """Compare the slopes; a policy that starts like the oracle has nothing to flatten."""
        regret = measures.multitask_regret(environment, self.policy)
        parts = fifths(regret.shape[1])
        first, last = slopes(regret, parts[0]), slopes(regret, parts[-1])
        text = (
            f"{self.label} loses {number(first.mean(), 3)} per step in the first fifth and "
            f"{number(last.mean(), 3)} in the last"
        )
        falls = difference(last, self.share * first).is_below() if first.mean() > 0 else None
        return Finding(text, falls)


@dataclass(frozen=True)
class SlopeStays(Rule):
    """Strict: multi-task regret rises, and as fast late as early."""

    tolerance: float = 0.25

    also_needs: ClassVar[tuple[str, ...]] = (ORACLE,)
    words: ClassVar[str] = (
        "Linear, strictly: multi-task regret rises, and its slope over the second half of the "
        "steps is within 25 % of its slope between the first fifth and the half, by 95 % intervals."
    )

    def measure(self, measures: Measures, environment: str) -> Finding:
        """Compare the slopes of two parts of the run."""
        regret = measures.multitask_regret(environment, self.policy)
        num_steps = regret.shape[1]
        early = slopes(regret, slice(num_steps // 5, num_steps // 2))
        late = slopes(regret, slice(num_steps // 2, num_steps))
        text = (
            f"{self.label} loses {number(early.mean(), 3)} per step before the half and "
            f"{number(late.mean(), 3)} after it"
        )
        limits = (
            difference(0.0 * early, early),
            difference(late, (1 + self.tolerance) * early),
            difference((1 - self.tolerance) * early, late),
        )
        return Finding(text, all_hold(limit.is_below() for limit in limits))


@dataclass(frozen=True)
class WithinShare(Rule):
    """Strict: the gap between two policies is small compared with their own regret."""

    share: float = 0.2

    words: ClassVar[str] = (
        "Close, strictly: the paired difference in total regret is within ± 20 % of the smaller "
        "of the two mean total regrets, by its 95 % interval."
    )

    def measure(self, measures: Measures, environment: str) -> Finding:
        """Compare the difference with what is allowed."""
        totals = [measures.total_regret(environment, name) for name in (self.policy, self.other)]
        allowed = self.share * min(float(total.mean()) for total in totals)
        gap = difference(*totals)
        text = f"{self.label} minus {self.other_label} is {gap.show()}, allowed ± {number(allowed)}"
        return Finding(text, all_hold((gap.is_below(allowed), gap.is_above(-allowed))))


def _linearised_ratio(first: Values, second: Values) -> Values:
    """Return one value per seed whose mean is the ratio of means, with its first-order error.

    NaN if the second mean is zero.
    """
    below = second.mean()
    if not below:
        return np.full_like(first, np.nan)
    share = first.mean() / below
    return share + (first - share * second) / below


def _power(curves: Values) -> Difference:
    """Fit the exponent of the mean curve; its interval is the jackknife's over seeds."""
    exponent = _exponent(curves.mean(axis=0))
    num_seeds = len(curves)
    if num_seeds < 2:
        return Difference(exponent, math.nan, math.nan, math.nan)
    left_out = np.array(
        [_exponent(np.delete(curves, seed, axis=0).mean(axis=0)) for seed in range(num_seeds)]
    )
    error = math.sqrt((num_seeds - 1) * float(left_out.var()))
    reach = t_quantile(num_seeds - 1) * error
    return Difference(exponent, error, exponent - reach, exponent + reach)


def _exponent(curve: Values) -> float:
    """Regress log regret on log step over the second half; NaN if the curve is not positive."""
    half = len(curve) // 2
    if len(curve) < 4 or curve[half:].min() <= 0:
        return math.nan
    steps = np.arange(1, len(curve) + 1)[half:]
    return float(np.polyfit(np.log(steps), np.log(curve[half:]), 1)[0])
