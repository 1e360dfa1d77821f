"""Rules about how much one policy loses compared with another: ratios of means over seeds."""

import numpy as np

from cocobandits.experiments.criteria import Part, criterion
from cocobandits.experiments.estimates import Values, difference, estimate, number, ratio
from cocobandits.experiments.measures import POLICY_LABELS, Measures

VERDICT_RULE = "Decided by the mean over the seeds; the bracket is its 95 % interval."


@criterion()
def at_most(
    measures: Measures, environment: str, policy: str, yardstick: str, *, limit: float
) -> Part:
    """Compare mean total regrets: at most so much of the yardstick's."""
    regrets = [measures.total_regret(environment, each) for each in (policy, yardstick)]
    told = f"{environment}: {POLICY_LABELS[policy]} over {POLICY_LABELS[yardstick]}"
    return Part(_tell(told, *regrets), bool(regrets[0].mean() <= limit * regrets[1].mean()))


@criterion()
def below(
    measures: Measures, environment: str, policy: str, yardstick: str, *, limit: float
) -> Part:
    """Compare mean total regrets: less than so much of the yardstick's."""
    regrets = [measures.total_regret(environment, each) for each in (policy, yardstick)]
    told = f"{environment}: {POLICY_LABELS[policy]} over {POLICY_LABELS[yardstick]}"
    return Part(_tell(told, *regrets), bool(regrets[0].mean() < limit * regrets[1].mean()))


@criterion()
def ends_below(measures: Measures, environment: str, policy: str, yardstick: str) -> Part:
    """Compare mean regrets of the second half of the steps: less than the yardstick's."""
    regrets = [measures.second_half_regret(environment, each) for each in (policy, yardstick)]
    told = f"{environment}: {POLICY_LABELS[policy]} over {POLICY_LABELS[yardstick]}"
    return Part(_tell(told, *regrets), bool(regrets[0].mean() < regrets[1].mean()))


@criterion()
def worst_seed(
    measures: Measures, environment: str, policy: str, yardstick: str, *, limit: float
) -> Part:
    """Compare total regrets seed by seed, and tell the worst."""
    regrets = [measures.total_regret(environment, each) for each in (policy, yardstick)]
    place = int(np.argmax(regrets[0] - limit * regrets[1]))
    mine, theirs = (float(regret[place]) for regret in regrets)
    share = number(mine / theirs, 2) if theirs else "∞"
    told = f"{environment}: on its worst seed, {measures.seeds[place]}, {share}"
    return Part(f"{told}, {number(mine)} of {number(theirs)}", mine <= limit * theirs)


@criterion()
def not_worse(measures: Measures, environment: str, policy: str, yardstick: str) -> Part:
    """Compare total regrets by their paired difference."""
    gap = difference(
        measures.total_regret(environment, policy), measures.total_regret(environment, yardstick)
    )
    told = f"{environment}: {POLICY_LABELS[policy]} minus {POLICY_LABELS[yardstick]}"
    return Part(f"{told} is {gap.show()}", gap.mean <= 0)


def _tell(told: str, first: Values, second: Values) -> str:
    shown = f"{estimate(first).show()} of {estimate(second).show()}"
    return f"{told} is {ratio(first, second).show(2)}, {shown}"
