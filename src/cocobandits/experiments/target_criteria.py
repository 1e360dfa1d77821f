"""Rules about how much one policy loses compared with another: ratios of means over seeds."""

from typing import NamedTuple

import numpy as np

from cocobandits.experiments.criteria import Part, criterion
from cocobandits.experiments.estimates import difference, estimate, number, ratio
from cocobandits.experiments.measures import POLICY_LABELS, Measures

VERDICT_RULE = "Decided by the mean over the seeds; the bracket is its 95 % interval."


class Limit(NamedTuple):
    """The share of a yardstick's regret that is allowed, in total or in the second half.

    A strict limit must be stayed below.
    """

    share: float
    is_strict: bool = False
    is_second_half: bool = False

    def admits(self, mine: float, theirs: float) -> bool:
        """Compare without dividing: a yardstick may lose nothing."""
        allowed = self.share * theirs
        return mine < allowed if self.is_strict else mine <= allowed


@criterion()
def share(
    measures: Measures, environment: str, policy: str, yardstick: str, *, limit: Limit
) -> Part:
    """Compare the mean regrets that a limit is about."""
    measure = measures.second_half_regret if limit.is_second_half else measures.total_regret
    mine, theirs = measure(environment, policy), measure(environment, yardstick)
    where = f"{environment}, second half" if limit.is_second_half else environment
    told = f"{where}: {POLICY_LABELS[policy]} over {POLICY_LABELS[yardstick]}"
    shown = f"{estimate(mine).show()} of {estimate(theirs).show()}"
    return Part(
        f"{told} is {ratio(mine, theirs).show(2)}, {shown}",
        limit.admits(float(mine.mean()), float(theirs.mean())),
    )


@criterion()
def share_of_environment(
    measures: Measures, environment: str, policy: str, *, other: str, limit: float
) -> Part:
    """Compare the mean total regrets of one policy in two environments."""
    mine, theirs = (measures.total_regret(name, policy) for name in (environment, other))
    told = f"{POLICY_LABELS[policy]}: {environment} over {other}"
    shown = f"{estimate(mine).show()} of {estimate(theirs).show()}"
    return Part(
        f"{told} is {ratio(mine, theirs).show(2)}, {shown}",
        Limit(limit).admits(float(mine.mean()), float(theirs.mean())),
    )


@criterion()
def worst_seed(
    measures: Measures, environment: str, policy: str, yardstick: str, *, limit: float
) -> Part:
    """Compare total regrets seed by seed, and tell the worst."""
    regrets = [measures.total_regret(environment, each) for each in (policy, yardstick)]
    place = int(np.argmax(regrets[0] - limit * regrets[1]))
    mine, theirs = (float(regret[place]) for regret in regrets)
    quotient = number(mine / theirs, 2) if theirs else "∞"
    told = f"{environment}: on its worst seed, {measures.seeds[place]}, {quotient}"
    return Part(f"{told}, {number(mine)} of {number(theirs)}", mine <= limit * theirs)


@criterion()
def not_worse(measures: Measures, environment: str, policy: str, yardstick: str) -> Part:
    """Compare total regrets by their paired difference."""
    gap = difference(
        measures.total_regret(environment, policy), measures.total_regret(environment, yardstick)
    )
    told = f"{environment}: {POLICY_LABELS[policy]} minus {POLICY_LABELS[yardstick]}"
    return Part(f"{told} is {gap.show()}", gap.mean <= 0)
