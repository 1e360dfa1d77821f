"""What an acquisition is: something read off the beliefs of particles, then combined."""

from abc import ABC, abstractmethod
from typing import Any, Generic, NamedTuple, TypeVar

from cocobandits.models.base import Belief
from cocobandits.types import ArmVector, LogWeights, Scalar

T = TypeVar("T")
U = TypeVar("U")


class Motives(NamedTuple):
    """What speaks for each arm: the fields of `study.explanation.Motive`, standardised."""

    regret: ArmVector
    about_person: ArmVector
    about_population: ArmVector
    for_reward: ArmVector
    for_person: ArmVector
    for_population: ArmVector


class Evidence(NamedTuple):
    """What there is to decide on, about one user.

    Attributes:
        log_weights: of the particles.
        each: what was read off every particle's belief.
        together: what was read off the mixture of all of them.
        num_rewards: how many rewards the user has given so far.
    """

    log_weights: LogWeights
    each: Any
    together: Any
    num_rewards: Scalar


class Acquisition(ABC, Generic[T, U]):
    """A rule for choosing arms. Immutable and hashable.

    `T` is what it reads off each particle's belief, `U` off the mixture of them all. What is linear
    in the belief is read once, off the mixture; what tells particles apart is read off each.
    """

    @abstractmethod
    def read(self, belief: Belief) -> T:
        """Read what the rule needs off one particle's belief."""

    @abstractmethod
    def read_together(self, belief: Belief) -> U:
        """Read what the rule needs off the mixture of all particles' beliefs."""

    @abstractmethod
    def combine(self, evidence: Evidence) -> ArmVector:
        """Compute arm probabilities."""

    def motives(self, evidence: Evidence) -> Motives | None:
        """Say what the probabilities are for; None for a rule that cannot tell."""
        del evidence
        return None
