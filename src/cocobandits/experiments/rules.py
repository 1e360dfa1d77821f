"""A rule: a criterion on the measurements of a run, as data.

A rule is a frozen dataclass. It names its policies, holds its criterion in words, and returns a
`Finding`. The rules themselves are in `regret_rules`, `learning_rules` and `target_rules`.

A finding is undecided (None) for a single seed, or if the 95 % interval over seeds reaches to both
sides of the limit: too little evidence is not evidence against.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from cocobandits.experiments.measures import POLICY_LABELS, Measures

MIN_SEEDS = 2


class Finding(NamedTuple):
    """The measurement of one rule, and whether the rule holds; None if undecided."""

    text: str
    holds: bool | None


@dataclass(frozen=True)
class Rule(ABC):
    """A criterion on one policy, or on two.

    Attributes:
        policy: the policy that the rule is about.
        other: the policy it is compared with, if any.
        also_needs: further policies that the criterion is computed from.
    """

    policy: str
    other: str = ""

    also_needs: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def words(self) -> str:
        """The criterion in one sentence."""

    @abstractmethod
    def measure(self, measures: Measures, environment: str) -> Finding:
        """Apply the criterion to a run that has every policy it needs."""

    @property
    def policies(self) -> tuple[str, ...]:
        """List the policies that a run must have."""
        return tuple(name for name in (self.policy, self.other, *self.also_needs) if name)

    @property
    def other_environments(self) -> tuple[str, ...]:
        """List the environments that a run must have besides the one it is applied to."""
        return ()

    def find(self, measures: Measures, environment: str) -> Finding:
        """Apply the criterion; a single seed decides nothing."""
        finding = self.measure(measures, environment)
        return finding if len(measures.seeds) >= MIN_SEEDS else finding._replace(holds=None)

    @property
    def label(self) -> str:
        """The display name of the policy."""
        return POLICY_LABELS.get(self.policy, self.policy)

    @property
    def other_label(self) -> str:
        """The display name of the policy it is compared with."""
        return POLICY_LABELS.get(self.other, self.other)


def all_hold(outcomes: Iterable[bool | None]) -> bool | None:
    """Combine outcomes: one False outweighs undecided ones."""
    found = set(outcomes)
    return False if False in found else None if None in found else True
