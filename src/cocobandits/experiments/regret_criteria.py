"""Rules about regret while learning: flattens, linear, less, close."""

from cocobandits.experiments.criteria import Part, criterion
from cocobandits.experiments.estimates import difference, number
from cocobandits.experiments.measures import ORACLE, POLICY_LABELS, Measures, fifths, slope

FLATTENS_SHARE = 1 / 3
LINEAR_TOLERANCE = 0.25
CLOSE_SHARE = 0.2

FLATTENS_RULE = (
    "Flattens: the mean multi-task regret rises less than a third as fast in the last fifth of "
    "the steps as in the first."
)
LINEAR_RULE = (
    "Linear: the mean multi-task regret rises, and its slope over the second half of the steps is "
    "within 25 % of its slope between the first fifth and the half."
)
LESS_RULE = (
    "Less: the 95 % interval of the paired difference in total regret lies entirely below zero."
)
CLOSE_RULE = (
    "Close: the 95 % interval of the paired difference in total regret lies within ± 20 % of the "
    "multi-task regret of Ind-TS."
)


@criterion(ORACLE)
def flattens(measures: Measures, environment: str, policy: str) -> Part:
    """Compare how fast multi-task regret grows at the end and at the start."""
    regret = measures.multitask_regret(environment, policy)
    parts = fifths(regret.shape[1])
    first, last = slope(regret, parts[0]), slope(regret, parts[-1])
    told = f"{POLICY_LABELS[policy]} loses {number(first, 3)} per step in the first fifth"
    # A policy that starts no worse than the oracle has nothing to flatten.
    is_met = last < FLATTENS_SHARE * first if first > 0 else None
    return Part(f"{told} and {number(last, 3)} in the last", is_met)


@criterion(ORACLE)
def linear(measures: Measures, environment: str, policy: str) -> Part:
    """Compare the slopes of two stretches of the run."""
    regret = measures.multitask_regret(environment, policy)
    num_steps = regret.shape[1]
    first = slope(regret, slice(num_steps // 5, num_steps // 2))
    second = slope(regret, slice(num_steps // 2, num_steps))
    told = f"{POLICY_LABELS[policy]} loses {number(first, 3)} per step before the half"
    is_met = first > 0 and abs(second - first) <= LINEAR_TOLERANCE * first
    return Part(f"{told} and {number(second, 3)} after it", is_met)


@criterion()
def less(measures: Measures, environment: str, better: str, worse: str) -> Part:
    """Compare the total regrets of two policies; the oracle's would cancel out."""
    gap = difference(
        measures.total_regret(environment, better), measures.total_regret(environment, worse)
    )
    told = f"{POLICY_LABELS[better]} minus {POLICY_LABELS[worse]} is {gap.show()}"
    return Part(told, gap.is_below)


@criterion("ind-ts", ORACLE)
def close(measures: Measures, environment: str, first: str, second: str) -> Part:
    """Compare a difference with what it costs not to share."""
    cost = float(measures.multitask_regret(environment, "ind-ts")[:, -1].mean())
    allowed = CLOSE_SHARE * cost
    gap = difference(
        measures.total_regret(environment, first), measures.total_regret(environment, second)
    )
    told = f"{POLICY_LABELS[first]} minus {POLICY_LABELS[second]} is {gap.show()}"
    is_met = -allowed <= gap.low and gap.high <= allowed
    return Part(f"{told}, allowed ± {number(allowed)}", is_met)
