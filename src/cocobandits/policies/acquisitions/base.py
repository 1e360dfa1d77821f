"""What an acquisition is: something read off each particle's belief, then combined."""

from abc import ABC, abstractmethod
from typing import Generic, NamedTuple, TypeVar

from cocobandits.models.base import Belief
from cocobandits.types import ArmVector, LogWeights, Scalar

T = TypeVar("T")


class Motives(NamedTuple):
    """What speaks for each arm: the fields of `study.explanation.Motive`, standardised."""

    regret: ArmVector
    about_person: ArmVector
    about_population: ArmVector
    for_reward: ArmVector
    for_person: ArmVector
    for_population: ArmVector


class Acquisition(ABC, Generic[T]):
    """A rule for choosing arms. Immutable and hashable; `T` is what it reads per particle."""

    @abstractmethod
    def read(self, belief: Belief) -> T:
        """Read what the rule needs off one particle's belief."""

    @abstractmethod
    def combine(self, log_weights: LogWeights, readings: T, num_rewards: Scalar) -> ArmVector:
        """Compute arm probabilities from the readings of all particles.

        Args:
            log_weights: of the particles.
            readings: of every particle, about one user.
            num_rewards: how many rewards the user has given so far.
        """

    def motives(self, log_weights: LogWeights, readings: T, num_rewards: Scalar) -> Motives | None:
        """Say what the probabilities are for; None for a rule that cannot tell."""
        del log_weights, readings, num_rewards
        return None
