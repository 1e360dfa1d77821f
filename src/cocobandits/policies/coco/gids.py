"""Global information-directed sampling (paper, App. "Global IDS with Particle Weight Entropy").

For each particle s the paper weighs the regret expected under s against the fall of the entropy of
the particle weights, with the reward drawn from s. That gain is not a mutual information and can be
negative; it is floored at zero. The particle is drawn first and its optimal mixture played, so the
marginal law is Σ_s w_s π_s.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from cocobandits.inference.weights import average, entropy
from cocobandits.numerics.reward_grid import RewardGrid
from cocobandits.numerics.traced import traced
from cocobandits.policies.coco.acquisition import (
    Acquisition,
    UserReadings,
    as_shares,
    best_mixture,
    log_positive,
)
from cocobandits.populations.base import Belief
from cocobandits.types import ArmValues, ArmVector, LogWeights, Rewards, Scalar


class GidsReading(NamedTuple):
    """What one particle expects of each arm."""

    regret: ArmVector
    predictive: ArmValues


@traced("rewards", choices=())
@dataclass(frozen=True)
class GlobalInformationDirectedSampling(Acquisition):
    """The paper's GIDS, with its optimum in closed form; gains are summed over `rewards`."""

    rewards: RewardGrid

    def next_rewards(self, together: Belief) -> Rewards:
        """Lay out the rewards that gains are summed over."""
        return together.next_rewards(self.rewards)

    def read(self, belief: Belief, rewards: Rewards) -> GidsReading:
        """Compute expected regret and the density of the next reward."""
        return GidsReading(belief.expected_best() - belief.mean(), belief.predictive(rewards))

    def read_together(self, belief: Belief, rewards: Rewards) -> None:
        """Compute nothing: every particle makes its own trade-off."""

    def combine(self, readings: UserReadings) -> ArmVector:
        """Solve each particle's trade-off and average the solutions."""
        log_weights, (regret, predictive) = readings.log_weights, readings.each
        gains = jax.vmap(self._gains, in_axes=(None, 1), out_axes=1)(log_weights, predictive)
        mixtures = jax.vmap(best_mixture)(regret, gains)
        return average(log_weights, mixtures)

    def _gains(
        self, log_weights: LogWeights, predictive: Float[Array, "particle value"]
    ) -> Float[Array, " particle"]:
        """Compute H(w) - E_{r|s}[H(w | r)] for one arm and every particle s, floored at zero."""

        def entropy_after(density: Float[Array, " particle"]) -> Scalar:
            return entropy(log_weights + log_positive(density))

        after = jax.vmap(entropy_after)(predictive.T)
        return jnp.maximum(entropy(log_weights) - as_shares(predictive) @ after, 0.0)
