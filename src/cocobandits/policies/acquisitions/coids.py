"""Information-directed sampling for this user and for everyone who comes later (CoIDS).

Regret and information are taken under the whole mixture of particles. The gain of an arm is

    I(A*; r_a) + population_weight · I(f; r_a)

what its next reward r_a would tell about this user's best arm A*, and about the population f. Both
are mutual informations: never negative, and the same if a particle is held twice at half the
weight. The mixture of arms with the least (expected regret)² per nat is played.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from cocobandits.inference.weights import average
from cocobandits.models.base import Belief, PopulationModel
from cocobandits.policies.acquisitions.base import Acquisition, Motives
from cocobandits.policies.acquisitions.information import best_mixture
from cocobandits.policies.acquisitions.rewards import RewardGrid
from cocobandits.types import ArmVector, LogWeights

_TINY = float(np.finfo(float).tiny)


class CoidsReading(NamedTuple):
    """What one particle expects: of each arm, and of each arm together with who is best."""

    regret: Float[Array, "*particle arm"]
    joint: Float[Array, "*particle best arm value"]


@dataclass(frozen=True)
class CoInformationDirectedSampling(Acquisition[CoidsReading]):
    """Play the best trade-off of regret now, and information about this user and all others."""

    rewards: RewardGrid
    population_weight: float = 1.0

    @classmethod
    def for_model(
        cls, model: PopulationModel, population_weight: float
    ) -> "CoInformationDirectedSampling":
        """Lay out rewards over all that can happen."""
        return cls(RewardGrid.for_model(model), population_weight)

    def read(self, belief: Belief) -> CoidsReading:
        """Read expected regret, and next rewards with the best arm."""
        joint = belief.best_and_reward(self.rewards.values())
        # The grid of rewards becomes a distribution, for every particle and arm.
        joint = joint / jnp.sum(joint, axis=(0, 2), keepdims=True)
        return CoidsReading(belief.expected_best() - belief.mean(), joint)

    def combine(self, log_weights: LogWeights, readings: CoidsReading) -> ArmVector:
        """Minimise squared regret per nat."""
        regret, about_person, about_population = self._prospects(log_weights, readings)
        return best_mixture(regret, about_person + self.population_weight * about_population)

    def motives(self, log_weights: LogWeights, readings: CoidsReading) -> Motives:
        """Take the reasons to learn away one after the other, and see what changes."""
        regret, about_person, about_population = self._prospects(log_weights, readings)
        probabilities = best_mixture(
            regret, about_person + self.population_weight * about_population
        )
        without_population = best_mixture(regret, about_person)
        greedy = (jnp.arange(len(regret)) == jnp.argmin(regret)).astype(float)
        return Motives(
            regret,
            about_person,
            about_population,
            greedy,
            without_population - greedy,
            probabilities - without_population,
        )

    def _prospects(
        self, log_weights: LogWeights, readings: CoidsReading
    ) -> tuple[ArmVector, ArmVector, ArmVector]:
        """Compute regret and both informations under the mixture of particles."""
        mixture = average(log_weights, readings.joint)
        reward = jnp.sum(mixture, axis=0)
        best = jnp.sum(mixture, axis=2)
        about_person = _divergence(mixture, best[:, :, None] * reward[None, :, :], axes=(0, 2))
        given_particle = jnp.sum(readings.joint, axis=1)
        surprise = _divergence(given_particle, reward[None, :, :], axes=(2,))
        return average(log_weights, readings.regret), about_person, average(log_weights, surprise)


def _divergence(
    actual: Float[Array, "..."], reference: Float[Array, "..."], axes: tuple[int, ...]
) -> Float[Array, "..."]:
    """Compute Σ p log(p/q); rounding may leave it slightly negative."""
    ratio = jnp.log(jnp.maximum(actual, _TINY)) - jnp.log(jnp.maximum(reference, _TINY))
    return jnp.maximum(jnp.sum(actual * ratio, axis=axes), 0.0)
