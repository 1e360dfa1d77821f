"""What an environment declares, and the truth it draws."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cocobandits.errors import ConfigurationError

FloatMatrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]


class Cohort(NamedTuple):
    """Users as nature made them: what can be seen, and what cannot."""

    contexts: list[dict[str, float | str]]
    arm_means: FloatMatrix  # user × arm


@dataclass(frozen=True)
class Recruitment:
    """Who comes when: a batch at the start of each of the first rounds, for some steps each."""

    num_batches: int
    batch_size: int
    steps_per_user: int

    def __post_init__(self) -> None:
        if min(self.num_batches, self.batch_size, self.steps_per_user) < 1:
            raise ConfigurationError(
                f"Expected at least one batch, user and step; got {self}. Raise what is below one."
            )

    @property
    def num_users(self) -> int:
        """Users recruited in all."""
        return self.num_batches * self.batch_size

    @property
    def num_steps(self) -> int:
        """Interactions in all."""
        return self.num_users * self.steps_per_user


class Environment(ABC):
    """A population to learn from."""

    name: str
    arms: tuple[str, ...]
    context: dict[str, tuple[float, float] | list[str]]
    reward_range: tuple[float, float]
    reward_noise: float
    recruitment: Recruitment

    @abstractmethod
    def draw_users(self, generator: np.random.Generator, num_users: int) -> Cohort:
        """Draw users from the true population."""
