"""What an acquisition is: something read off each particle's belief, then combined."""

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from cocobandits.models.base import Belief
from cocobandits.types import ArmVector, LogWeights

T = TypeVar("T")


class Acquisition(ABC, Generic[T]):
    """A rule for choosing arms. Immutable and hashable; `T` is what it reads per particle."""

    @abstractmethod
    def read(self, belief: Belief) -> T:
        """Read what the rule needs off one particle's belief."""

    @abstractmethod
    def combine(self, log_weights: LogWeights, readings: T) -> ArmVector:
        """Compute arm probabilities from the readings of all particles."""
