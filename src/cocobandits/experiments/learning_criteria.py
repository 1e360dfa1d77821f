"""Rules about what was learned (evaluation regret) and where it was looked for (the third arm)."""

from cocobandits.experiments.criteria import Part, criterion
from cocobandits.experiments.estimates import difference, estimate, number, percent
from cocobandits.experiments.measures import (
    ORACLE,
    POLICY_LABELS,
    Measures,
    fifths,
)

CLOSED_SHARE = 0.8
TURN_ERRORS = 2.0

APPROACHES_RULE = (
    "Approaches: from the first to the last round, at least 80 % of the gap between the "
    "evaluation regret and the oracle's is closed, by the 95 % interval of the last gap minus a "
    "fifth of the first."
)
TURNS_RULE = (
    "Falls: the lowest point of the mean evaluation regret is not the first round, which lies "
    "above it by more than 2 standard errors of the paired difference. Rises: the lowest point is "
    "not in the last fifth of the rounds, and the last round lies above it by as much."
)
THIRD_ARM_RULE = (
    "Early: two paired differences in the share of the third arm, which is never best here, are "
    "above zero by their 95 % intervals: GIDS's first fifth of the steps minus its last, and "
    "GIDS's first fifth minus NPM-TS's."
)


@criterion(ORACLE)
def approaches(measures: Measures, environment: str, policy: str) -> Part:
    """Compute which share of the gap to the oracle's evaluation regret is closed."""
    curves = [measures.evaluations[environment, each] for each in (policy, ORACLE)]
    gaps = curves[0] - curves[1]
    first, last = float(gaps[:, 0].mean()), float(gaps[:, -1].mean())
    told = f"{POLICY_LABELS[policy]}'s gap goes from {number(first, 2)} to {number(last, 2)}"
    if first <= 0:
        return Part(told, None)
    excess = difference(gaps[:, -1], (1 - CLOSED_SHARE) * gaps[:, 0])
    return Part(f"{told}, {percent(1 - last / first)} closed", excess.is_below)


@criterion()
def falls(measures: Measures, environment: str, policy: str) -> Part:
    """Compare the first round with the lowest."""
    curve = measures.evaluations[environment, policy]
    lowest = int(curve.mean(axis=0).argmin())
    fall = estimate(curve[:, 0] - curve[:, lowest])
    told = f"{POLICY_LABELS[policy]} falls by {fall.show(2)} to its lowest point in round {lowest}"
    return Part(told, lowest > 0 and (fall.mean > TURN_ERRORS * fall.error or None))


@criterion()
def rises(measures: Measures, environment: str, policy: str) -> Part:
    """Compare the last round with the lowest."""
    curve = measures.evaluations[environment, policy]
    num_rounds = curve.shape[1]
    lowest = int(curve.mean(axis=0).argmin())
    rise = estimate(curve[:, -1] - curve[:, lowest])
    told = f"rises by {rise.show(2)} from there to the last round, {num_rounds - 1}"
    is_before_end = lowest < fifths(num_rounds)[-1].start
    return Part(told, is_before_end and (rise.mean > TURN_ERRORS * rise.error or None))


@criterion()
def third_arm_fades(measures: Measures, environment: str, policy: str) -> Part:
    """Compare the share of the third arm in the first and the last fifth."""
    shares = measures.third_arm_parts(environment, policy)
    early, late = (percent(float(shares[:, part].mean()), 1) for part in (0, -1))
    told = f"{POLICY_LABELS[policy]} pulls it in {early} of the first and {late} of the last fifth"
    return Part(told, difference(shares[:, 0], shares[:, -1]).is_above)


@criterion()
def third_arm_exceeds(measures: Measures, environment: str, more: str, fewer: str) -> Part:
    """Compare the early shares of two policies."""
    shares = [measures.third_arm_parts(environment, each)[:, 0] for each in (more, fewer)]
    gap = difference(100 * shares[0], 100 * shares[1])
    told = f"early, {POLICY_LABELS[more]} minus {POLICY_LABELS[fewer]} is {gap.show()} points"
    return Part(told, gap.is_above)
