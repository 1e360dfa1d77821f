"""Rules about regret while learning: flattens, linear, less, close."""

from cocobandits.experiments.criteria import Part, criterion
from cocobandits.experiments.estimates import Difference, difference, number
from cocobandits.experiments.measures import ORACLE, POLICY_LABELS, Measures, fifths, slopes

FLATTENS_SHARE = 1 / 3
LINEAR_TOLERANCE = 0.25
CLOSE_SHARE = 0.2

FLATTENS_RULE = (
    "Flattens: multi-task regret rises less than a third as fast in the last fifth of the steps "
    "as in the first, by the 95 % interval of the last slope minus a third of the first."
)
LINEAR_RULE = (
    "Linear: multi-task regret rises, and its slope over the second half of the steps is within "
    "25 % of its slope between the first fifth and the half, by 95 % intervals."
)
LESS_RULE = "Less: the paired difference in total regret is below zero by its 95 % interval."
CLOSE_RULE = (
    "Close: the paired difference in total regret is within ± 20 % of the smaller of the two mean "
    "total regrets, by its 95 % interval."
)


@criterion(ORACLE)
def flattens(measures: Measures, environment: str, policy: str) -> Part:
    """Compare how fast multi-task regret grows at the end and at the start."""
    regret = measures.multitask_regret(environment, policy)
    parts = fifths(regret.shape[1])
    first, last = slopes(regret, parts[0]), slopes(regret, parts[-1])
    told = f"{POLICY_LABELS[policy]} loses {number(first.mean(), 3)} per step in the first fifth"
    # A policy that starts no worse than the oracle has nothing to flatten.
    is_met = difference(last, FLATTENS_SHARE * first).is_below if first.mean() > 0 else None
    return Part(f"{told} and {number(last.mean(), 3)} in the last", is_met)


@criterion(ORACLE)
def linear(measures: Measures, environment: str, policy: str) -> Part:
    """Compare the slopes of two stretches of the run."""
    regret = measures.multitask_regret(environment, policy)
    num_steps = regret.shape[1]
    first = slopes(regret, slice(num_steps // 5, num_steps // 2))
    second = slopes(regret, slice(num_steps // 2, num_steps))
    told = f"{POLICY_LABELS[policy]} loses {number(first.mean(), 3)} per step before the half"
    limits = (
        difference(0.0 * first, first),
        difference(second, (1 + LINEAR_TOLERANCE) * first),
        difference((1 - LINEAR_TOLERANCE) * first, second),
    )
    return Part(f"{told} and {number(second.mean(), 3)} after it", all_of(limits))


@criterion()
def less(measures: Measures, environment: str, better: str, worse: str) -> Part:
    """Compare the total regrets of two policies; the oracle's would cancel out."""
    gap = difference(
        measures.total_regret(environment, better), measures.total_regret(environment, worse)
    )
    told = f"{POLICY_LABELS[better]} minus {POLICY_LABELS[worse]} is {gap.show()}"
    return Part(told, gap.is_below)


@criterion()
def close(measures: Measures, environment: str, first: str, second: str) -> Part:
    """Compare a difference with the regrets themselves."""
    totals = [measures.total_regret(environment, policy) for policy in (first, second)]
    allowed = CLOSE_SHARE * min(float(total.mean()) for total in totals)
    gap = difference(*totals)
    told = f"{POLICY_LABELS[first]} minus {POLICY_LABELS[second]} is {gap.show()}"
    limits = (
        difference(totals[0] - allowed, totals[1]),
        difference(totals[1] - allowed, totals[0]),
    )
    return Part(f"{told}, allowed ± {number(allowed)}", all_of(limits))


def all_of(limits: tuple[Difference, ...]) -> bool | None:
    """Say whether all differences are below zero; one above outweighs those not decided."""
    outcomes = {limit.is_below for limit in limits}
    return False if False in outcomes else None if None in outcomes else True
