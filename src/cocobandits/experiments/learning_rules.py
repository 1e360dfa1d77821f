"""Rules about the learned prior (evaluation regret) and about early exploration."""

from dataclasses import dataclass
from typing import ClassVar

from cocobandits.experiments.estimates import difference, estimate, percent, points, ratio
from cocobandits.experiments.measures import ORACLE, Measures, fifths
from cocobandits.experiments.rules import Finding, Rule

# Standard errors of a paired difference that a turn of a curve must exceed.
_TURN_ERRORS = 2.0


@dataclass(frozen=True)
class Approaches(Rule):
    """The gap between a learned prior's evaluation regret and the oracle's is mostly closed.

    Attributes:
        closed: the share of the gap that must be closed.
        is_last_round: compare with the last round alone, not with the last fifth of the rounds.
    """

    closed: float = 0.5
    is_last_round: bool = False

    also_needs: ClassVar[tuple[str, ...]] = (ORACLE,)

    @property
    def words(self) -> str:
        """The criterion in one sentence."""
        when = "the last round" if self.is_last_round else "the last fifth of the rounds"
        return (
            f"Approaches{', strictly' if self.is_last_round else ''}: from the first round to "
            f"{when}, more than {percent(self.closed)} of the gap between the evaluation regret "
            "and the oracle's is closed, by its 95 % interval."
        )

    def measure(self, measures: Measures, environment: str) -> Finding:
        """Compute the share of the gap that is closed; a policy without a gap decides nothing."""
        gaps = measures.evaluations[environment, self.policy]
        gaps = gaps - measures.evaluations[environment, ORACLE]
        last = gaps[:, -1:] if self.is_last_round else gaps[:, fifths(gaps.shape[1])[-1]]
        closed = ratio(gaps[:, 0] - last.mean(axis=1), gaps[:, 0])
        text = f"{self.label} closes {points(closed, unit='%')} of its gap in evaluation regret"
        return Finding(text, closed.is_above(self.closed) if gaps[:, 0].mean() > 0 else None)


@dataclass(frozen=True)
class Falls(Rule):
    """Evaluation regret falls from the first round to its lowest point."""

    words: ClassVar[str] = (
        "Falls: the lowest point of the mean evaluation regret is not the first round, which lies "
        "above it by more than 2 standard errors of the paired difference."
    )

    def measure(self, measures: Measures, environment: str) -> Finding:
        """Compare the first round with the lowest."""
        curve = measures.evaluations[environment, self.policy]
        lowest = int(curve.mean(axis=0).argmin())
        if lowest == 0:
            text = f"{self.label}'s evaluation regret is lowest in round 0: it never falls"
            return Finding(text, False)
        fall = estimate(curve[:, 0] - curve[:, lowest])
        text = (
            f"{self.label}'s evaluation regret falls by {fall.show(2)} to its lowest point in "
            f"round {lowest}"
        )
        return Finding(text, fall.mean > _TURN_ERRORS * fall.error or None)


@dataclass(frozen=True)
class Rises(Rule):
    """Evaluation regret rises from its lowest point to the last round."""

    words: ClassVar[str] = (
        "Rises: the lowest point is not in the last fifth of the rounds, and the last round lies "
        "above it by more than 2 standard errors."
    )

    def measure(self, measures: Measures, environment: str) -> Finding:
        """Compare the last round with the lowest."""
        curve = measures.evaluations[environment, self.policy]
        num_rounds = curve.shape[1]
        lowest = int(curve.mean(axis=0).argmin())
        rise = estimate(curve[:, -1] - curve[:, lowest])
        text = f"it rises by {rise.show(2)} from round {lowest} to the last, {num_rounds - 1}"
        is_before_end = lowest < fifths(num_rounds)[-1].start
        return Finding(text, is_before_end and (rise.mean > _TURN_ERRORS * rise.error or None))


@dataclass(frozen=True)
class ExploresMore(Rule):
    """Early on, one policy plays arms that are not the user's best more often than another."""

    words: ClassVar[str] = (
        "Explores: in the first fifth of the steps, it plays an arm that is not the user's best "
        "more often than the other policy, by the 95 % interval of the paired difference."
    )

    def measure(self, measures: Measures, environment: str) -> Finding:
        """Compare the shares of steps with positive regret."""
        shares = []
        for name in (self.policy, self.other):
            regrets = measures.regrets[environment, name]
            shares.append((regrets[:, fifths(regrets.shape[1])[0]] > 0).mean(axis=1))
        gap = difference(*shares)
        text = (
            f"in the first fifth {self.label} plays an arm that is not best in "
            f"{percent(shares[0].mean())} of the steps, {self.other_label} in "
            f"{percent(shares[1].mean())}: {points(gap, digits=1)}"
        )
        return Finding(text, gap.is_above())


@dataclass(frozen=True)
class ThirdArmFades(Rule):
    """Strict: the third arm, which is never best in `mixture`, is played early and not late."""

    words: ClassVar[str] = (
        "Explores, strictly: the share of the third arm, which is never best here, is higher in "
        "GIDS's first fifth of the steps than in its last, and than in NPM-TS's first, by 95 % "
        "intervals."
    )

    def measure(self, measures: Measures, environment: str) -> Finding:
        """Compare the first fifth with the last."""
        shares = measures.third_arm_parts(environment, self.policy)
        early, late = (percent(float(shares[:, part].mean()), 1) for part in (0, -1))
        text = f"{self.label} plays the third arm in {early} of the first fifth, {late} of the last"
        return Finding(text, difference(shares[:, 0], shares[:, -1]).is_above())


@dataclass(frozen=True)
class ThirdArmExceeds(Rule):
    """Strict: early on, one policy plays the third arm more often than another."""

    words: ClassVar[str] = ThirdArmFades.words

    def measure(self, measures: Measures, environment: str) -> Finding:
        """Compare the first fifths of the two policies."""
        early = [
            measures.third_arm_parts(environment, name)[:, 0] for name in (self.policy, self.other)
        ]
        gap = difference(*early)
        text = f"early, {self.label} minus {self.other_label} is {points(gap, digits=1)}"
        return Finding(text, gap.is_above())
