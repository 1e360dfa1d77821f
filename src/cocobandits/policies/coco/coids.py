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
from cocobandits.models.rewards import RewardGrid
from cocobandits.policies.coco.acquisition import Acquisition, Evidence, Motives
from cocobandits.policies.coco.information import LEAST_DENSITY, as_shares, best_mixture
from cocobandits.types import ArmValues, ArmVector, LogWeights, Values

_TINY = float(np.finfo(float).tiny)
# What each particle expects of the next reward of every arm.
Predictions = Float[Array, "particle arm value"]


class Outlook(NamedTuple):
    """What the mixture of particles expects: of each arm, and of each with who is best."""

    regret: ArmVector
    joint: Float[Array, "best arm value"]


class Prospects(NamedTuple):
    """Expected regret of each arm, and the nats that its reward tells."""

    regret: ArmVector
    about_person: ArmVector
    about_population: ArmVector


@dataclass(frozen=True)
class CoInformationDirectedSampling(Acquisition[Predictions, Outlook]):
    """Play the best trade-off of regret now, and information about this user and all others."""

    rewards: RewardGrid
    population_weight: float = 1.0

    @classmethod
    def for_model(
        cls, model: PopulationModel, population_weight: float
    ) -> "CoInformationDirectedSampling":
        """Take the rewards that the model lays out."""
        return cls(model.reward_grid, population_weight)

    def read(self, belief: Belief) -> ArmValues:
        """Read what is expected of the next rewards."""
        return as_shares(belief.predictive(self.rewards.values()))

    def read_together(self, belief: Belief) -> Outlook:
        """Read expected regret, and next rewards with the best arm."""
        return look_out(belief, self.rewards.values())

    def combine(self, evidence: Evidence) -> ArmVector:
        """Minimise squared regret per nat."""
        return self._choose(expect(evidence.log_weights, evidence.each, evidence.together))

    def motives(self, evidence: Evidence) -> Motives:
        """Take the reasons to learn away one after the other, and see what changes."""
        prospects = expect(evidence.log_weights, evidence.each, evidence.together)
        at_once = greedy(prospects.regret)
        alone = best_mixture(prospects.regret, prospects.about_person)
        return Motives(*prospects, at_once, alone - at_once, self._choose(prospects) - alone)

    def _choose(self, prospects: Prospects) -> ArmVector:
        regret, about_person, about_population = prospects
        return best_mixture(regret, about_person + self.population_weight * about_population)


def look_out(belief: Belief, rewards: Values) -> Outlook:
    """Read what the mixture of particles expects."""
    best, joint = belief.best_outlook(rewards)
    joint = joint + LEAST_DENSITY
    total = jnp.sum(joint, axis=(0, 2), keepdims=True)
    return Outlook(best - belief.mean(), joint / total)


def expect(log_weights: LogWeights, predictions: Predictions, outlook: Outlook) -> Prospects:
    """Compute regret and both informations under the mixture of particles."""
    joint = outlook.joint
    independent = jnp.sum(joint, axis=2)[:, :, None] * jnp.sum(joint, axis=0)[None, :, :]
    about_person = _divergence(joint, independent, axes=(0, 2))
    expected = average(log_weights, predictions)
    surprise = _divergence(predictions, expected[None, :, :], axes=(2,))
    return Prospects(outlook.regret, about_person, average(log_weights, surprise))


def greedy(loss: ArmVector) -> ArmVector:
    """Give all probability to the arm that loses least."""
    return (jnp.arange(len(loss)) == jnp.argmin(loss)).astype(float)


def _divergence(
    actual: Float[Array, "..."], reference: Float[Array, "..."], axes: tuple[int, ...]
) -> Float[Array, "..."]:
    """Compute Σ p log(p/q); rounding may leave it slightly negative."""
    ratio = jnp.log(jnp.maximum(actual, _TINY)) - jnp.log(jnp.maximum(reference, _TINY))
    return jnp.maximum(jnp.sum(actual * ratio, axis=axes), 0.0)
