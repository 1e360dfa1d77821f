"""What an environment declares, and the truth it draws."""

import copy
from abc import ABC, abstractmethod
from typing import Literal, NamedTuple

import numpy as np

from cocobandits.environments.recruitment import Recruitment
from cocobandits.models.chances import ChanceMixture
from cocobandits.models.gaussian_mixture import ConditionalMixture

FloatVector = np.ndarray[tuple[int], np.dtype[np.float64]]
FloatMatrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]
FloatCube = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

NOTHING_SHARED: FloatVector = np.zeros(0)


class Cohort(NamedTuple):
    """Users as nature made them: what can be seen, and what cannot."""

    contexts: list[dict[str, float | str | bool | None]]
    arm_means: FloatMatrix  # user × arm


class Environment(ABC):
    """A population to learn from.

    What nature fixes once for all users of a run (`draw_shared`) goes into every user and into the
    true population; most environments share nothing.
    """

    name: str
    arms: tuple[str, ...]
    context: dict[str, tuple[float, float] | list[str] | type[bool]]
    rewards: Literal["gaussian", "bernoulli"] = "gaussian"
    reward_range: tuple[float, float]
    reward_noise: float | None
    recruitment: Recruitment
    reward_limits: tuple[float, float] | None = None

    def draw_shared(self, generator: np.random.Generator) -> FloatVector:
        """Draw what all users of one run have in common."""
        del generator
        return NOTHING_SHARED

    @abstractmethod
    def draw_users(
        self, generator: np.random.Generator, num_users: int, shared: FloatVector = NOTHING_SHARED
    ) -> Cohort:
        """Draw users from the true population."""

    @abstractmethod
    def population(
        self, shared: FloatVector = NOTHING_SHARED
    ) -> ConditionalMixture | ChanceMixture:
        """Describe the true population P*(μ | x), in reward units and features on [-1, 1]."""

    def draw_noise(self, generator: np.random.Generator, shape: tuple[int, ...]) -> FloatCube:
        """Draw what chance adds to each reward, before it is known who is given what."""
        if self.rewards == "bernoulli":
            return generator.uniform(size=shape)
        assert self.reward_noise is not None
        return self.reward_noise * generator.normal(size=shape)

    def reward(self, arm_means: FloatCube, noise: FloatCube) -> FloatCube:
        """Make rewards of means and chance; a yes is as likely as its mean says."""
        if self.rewards == "bernoulli":
            return (noise < arm_means).astype(float)
        return arm_means + noise

    def recruiting(self, plan: Recruitment) -> "Environment":
        """Make the same environment with another plan of arrivals."""
        changed = copy.copy(self)
        changed.recruitment = plan
        return changed
