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
from cocobandits.types import ArmVector, LogWeights, Scalar, Values

_TINY = float(np.finfo(float).tiny)


class CoidsReading(NamedTuple):
    """What one particle expects: of each arm, and of each arm together with who is best."""

    regret: Float[Array, "*particle arm"]
    joint: Float[Array, "*particle best arm value"]


class Prospects(NamedTuple):
    """Expected regret of each arm, and the nats that its reward tells."""

    regret: ArmVector
    about_person: ArmVector
    about_population: ArmVector


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
        return read_prospects(belief, self.rewards.values())[0]

    def combine(
        self, log_weights: LogWeights, readings: CoidsReading, num_rewards: Scalar
    ) -> ArmVector:
        """Minimise squared regret per nat."""
        del num_rewards
        return self._choose(expect(log_weights, readings))

    def motives(
        self, log_weights: LogWeights, readings: CoidsReading, num_rewards: Scalar
    ) -> Motives:
        """Take the reasons to learn away one after the other, and see what changes."""
        del num_rewards
        prospects = expect(log_weights, readings)
        at_once = greedy(prospects.regret)
        alone = best_mixture(prospects.regret, prospects.about_person)
        return Motives(*prospects, at_once, alone - at_once, self._choose(prospects) - alone)

    def _choose(self, prospects: Prospects) -> ArmVector:
        regret, about_person, about_population = prospects
        return best_mixture(regret, about_person + self.population_weight * about_population)


def read_prospects(belief: Belief, rewards: Values) -> tuple[CoidsReading, ArmVector]:
    """Read what a particle expects, and the sum that made its rewards a distribution."""
    joint = belief.best_and_reward(rewards)
    total = jnp.sum(joint, axis=(0, 2))
    regret = belief.expected_best() - belief.mean()
    return CoidsReading(regret, joint / total[None, :, None]), total


def expect(log_weights: LogWeights, readings: CoidsReading) -> Prospects:
    """Compute regret and both informations under the mixture of particles."""
    mixture = average(log_weights, readings.joint)
    reward = jnp.sum(mixture, axis=0)
    best = jnp.sum(mixture, axis=2)
    about_person = _divergence(mixture, best[:, :, None] * reward[None, :, :], axes=(0, 2))
    given_particle = jnp.sum(readings.joint, axis=1)
    surprise = _divergence(given_particle, reward[None, :, :], axes=(2,))
    regret = average(log_weights, readings.regret)
    return Prospects(regret, about_person, average(log_weights, surprise))


def greedy(loss: ArmVector) -> ArmVector:
    """Give all probability to the arm that loses least."""
    return (jnp.arange(len(loss)) == jnp.argmin(loss)).astype(float)


def _divergence(
    actual: Float[Array, "..."], reference: Float[Array, "..."], axes: tuple[int, ...]
) -> Float[Array, "..."]:
    """Compute Σ p log(p/q); rounding may leave it slightly negative."""
    ratio = jnp.log(jnp.maximum(actual, _TINY)) - jnp.log(jnp.maximum(reference, _TINY))
    return jnp.maximum(jnp.sum(actual * ratio, axis=axes), 0.0)
