"""A belief about one user under particles of different noise: one grid for each of a few noises.

The inside of cells depends on the noise, and a table for each particle would make a decision up to
15 times as slow. Chances are smooth in log σ, so each particle's cells, which are exact, are split
between the two nearest of 12 noises, and are read there. That interpolates linearly: with noises h
apart in log σ, the chance of one of two arms that share a cell errs by at most 0.1 h².
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float

from cocobandits.populations.base import Belief
from cocobandits.populations.log_density.belief import GridBelief
from cocobandits.types import ArmValues, ArmVector, PerParticle, Scalar, Values
from cocobandits.users.statistics import Statistics

NUM_NOISES = 12
# The noises of particles with less weight are moved to those of the others.
_LEAST_SHARE = 1e-9


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class NoiseMixture(Belief):
    """Beliefs of one noise each, with normalised log-weights."""

    log_weights: Float[Array, "*each noise"]
    parts: GridBelief
    reward_noise: Float[Array, "*each"]

    @classmethod
    def of(cls, log_weights: Float[Array, " noise"], parts: GridBelief) -> "NoiseMixture":
        """Normalise the weights; `reward_noise` is the geometric mean."""
        log_shares = log_weights - logsumexp(log_weights)
        return cls(log_shares, parts, jnp.exp(jnp.exp(log_shares) @ jnp.log(parts.reward_noise)))

    def mean(self) -> ArmVector:
        """Compute E[μ_a]."""
        return self._average(GridBelief.mean)

    def variance(self) -> ArmVector:
        """Compute Var(μ_a): within noises, and between them."""
        mean = self.mean()
        return self._average(lambda part: part.variance() + (part.mean() - mean) ** 2)

    def best_probability(self) -> ArmVector:
        """Compute P(arm a has the largest mean)."""
        return self._average(GridBelief.best_probability)

    def expected_best(self) -> Scalar:
        """Compute E[max_a μ_a]."""
        return self._average(GridBelief.expected_best)

    def values(self) -> Values:
        """Take the points of all quadratures."""
        return jnp.sort(jax.vmap(GridBelief.values)(self.parts).ravel())

    def cumulative(self, values: Values) -> ArmValues:
        """Compute P(μ_a ≤ value)."""
        return self._average(lambda part: part.cumulative(values))

    def predictive(self, rewards: Values) -> ArmValues:
        """Compute the density of the next reward."""
        return self._average(lambda part: part.predictive(rewards))

    def best_and_reward(self, rewards: Values) -> Float[Array, "best arm value"]:
        """Compute the density of the next reward of every arm together with who is best."""
        return self._average(lambda part: part.best_and_reward(rewards))

    def mean_and_reward(self, rewards: Values) -> Float[Array, "other arm value"]:
        """Compute the density of the next reward of every arm, times what all means are then."""
        return self._average(lambda part: part.mean_and_reward(rewards))

    def pair_probability(self, first: int, second: int, edges: Values) -> Float[Array, "bin bin"]:
        """Compute the probability of square bins."""
        return self._average(lambda part: part.pair_probability(first, second, edges))

    def condition(self, statistics: Statistics) -> "NoiseMixture":
        """Learn from further rewards, which also say which noises are likelier."""
        parts, evidences = jax.vmap(lambda part: part.learn(statistics))(self.parts)
        log_weights = jnp.where(
            self.log_weights == -jnp.inf, -jnp.inf, self.log_weights + evidences
        )
        return NoiseMixture.of(log_weights, parts)

    def among(self, is_eligible: Bool[Array, " arm"]) -> "NoiseMixture":
        """Put the other arms out of the contest under every noise."""
        parts = jax.vmap(lambda part: part.among(is_eligible))(self.parts)
        return NoiseMixture(self.log_weights, parts, self.reward_noise)

    def blended(self, log_shares: Float[Array, " each"]) -> "NoiseMixture":
        """Put all noises side by side."""
        weights = log_shares[:, None] + self.log_weights
        parts = jax.tree.map(lambda part: part.reshape(-1, *part.shape[2:]), self.parts)
        return NoiseMixture.of(weights.ravel(), parts)

    def _average(self, read: Callable[[GridBelief], Array]) -> Array:
        shares, values = jnp.exp(self.log_weights), jax.lax.map(read, self.parts)
        # A noise that cannot be has no posterior either.
        is_possible = (shares > 0).reshape(-1, *(1,) * (values.ndim - 1))
        return jnp.tensordot(shares, jnp.where(is_possible, values, 0.0), axes=1)


def divide(
    shares: PerParticle, noises: PerParticle
) -> tuple[Float[Array, "particle noise"], Float[Array, " noise"]]:
    """Lay out noises evenly in log σ, and divide each particle's share between its neighbours."""
    logs, is_counted = jnp.log(noises), shares > _LEAST_SHARE
    low = jnp.min(jnp.where(is_counted, logs, jnp.inf))
    width = jnp.max(jnp.where(is_counted, logs, -jnp.inf)) - low
    place = jnp.clip((logs - low) / jnp.where(width > 0, width, 1.0), 0.0, 1.0) * (NUM_NOISES - 1)
    distance = jnp.abs(place[:, None] - jnp.arange(NUM_NOISES)[None, :])
    nodes = jnp.exp(low + width * jnp.linspace(0.0, 1.0, NUM_NOISES))
    return shares[:, None] * jnp.maximum(1 - distance, 0.0), nodes
