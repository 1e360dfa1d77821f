"""Rules about our own targets: regret as a share of a yardstick's, decided by the mean."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cocobandits.experiments.estimates import Values, difference, estimate, number, ratio
from cocobandits.experiments.measures import Measures
from cocobandits.experiments.rules import Finding, Rule

_DECIDED = "Decided by the mean over the seeds; the bracket is its 95 % interval."


@dataclass(frozen=True)
class ShareOf(Rule):
    """Mean regret is a share of another policy's, in total or in the second half of the steps.

    Attributes:
        limit: the largest share that is allowed.
        is_strict: the share must be below the limit.
        is_second_half: compare the second half of the steps.
    """

    limit: float = 1.0
    is_strict: bool = False
    is_second_half: bool = False

    @property
    def words(self) -> str:
        """The criterion in one sentence."""
        kind = "regret in the second half of the steps" if self.is_second_half else "total regret"
        allowed = f"{'below' if self.is_strict else 'at most'} {self.limit:g}"
        return f"Mean {kind} over {self.other_label}'s is {allowed}. {_DECIDED}"

    def measure(self, measures: Measures, environment: str) -> Finding:
        """Compare the means without dividing: a yardstick may lose nothing."""
        regret = measures.second_half_regret if self.is_second_half else measures.total_regret
        mine, theirs = regret(environment, self.policy), regret(environment, self.other)
        allowed = self.limit * float(theirs.mean())
        holds = mine.mean() < allowed if self.is_strict else mine.mean() <= allowed
        when = ", second half" if self.is_second_half else ""
        text = f"{self.label} over {self.other_label}{when} is {_show_share(mine, theirs)}"
        return Finding(text, bool(holds))


@dataclass(frozen=True)
class WorstSeed(Rule):
    """On no seed is regret above a share of another policy's."""

    limit: float = 1.0

    @property
    def words(self) -> str:
        """The criterion in one sentence."""
        return f"On no seed is total regret above {self.limit:g} times {self.other_label}'s."

    def measure(self, measures: Measures, environment: str) -> Finding:
        """Find the seed that exceeds the limit most."""
        mine, theirs = (
            measures.total_regret(environment, name) for name in (self.policy, self.other)
        )
        worst = int(np.argmax(mine - self.limit * theirs))
        quotient = number(mine[worst] / theirs[worst], 2) if theirs[worst] else "∞"
        text = (
            f"on its worst seed, {measures.seeds[worst]}, {quotient}, "
            f"{number(mine[worst])} of {number(theirs[worst])}"
        )
        return Finding(text, bool(mine[worst] <= self.limit * theirs[worst]))


@dataclass(frozen=True)
class NotWorse(Rule):
    """The mean paired difference in total regret is at most zero."""

    words: ClassVar[str] = (
        f"The paired difference in total regret is at most zero on average. {_DECIDED}"
    )

    def measure(self, measures: Measures, environment: str) -> Finding:
        """Compare the totals seed by seed."""
        gap = difference(
            *(measures.total_regret(environment, name) for name in (self.policy, self.other))
        )
        return Finding(f"{self.label} minus {self.other_label} is {gap.show()}", gap.mean <= 0)


@dataclass(frozen=True)
class ShareOfEnvironment(Rule):
    """Mean total regret is a share of that of the same policy in another environment."""

    baseline: str = ""
    limit: float = 1.0

    @property
    def words(self) -> str:
        """The criterion in one sentence."""
        return (
            f"Mean total regret over that in {self.baseline} is at most {self.limit:g}. {_DECIDED}"
        )

    @property
    def other_environments(self) -> tuple[str, ...]:
        """List the environment that is compared with."""
        return (self.baseline,)

    def measure(self, measures: Measures, environment: str) -> Finding:
        """Compare the mean totals of one policy in two environments."""
        mine, theirs = (
            measures.total_regret(name, self.policy) for name in (environment, self.baseline)
        )
        text = f"{self.label}'s regret over that in {self.baseline} is {_show_share(mine, theirs)}"
        return Finding(text, bool(mine.mean() <= self.limit * theirs.mean()))


def _show_share(mine: Values, theirs: Values) -> str:
    return f"{ratio(mine, theirs).show(2)}, {estimate(mine).show()} of {estimate(theirs).show()}"
