"""Global information-directed sampling (paper, App. "Global IDS with Particle Weight Entropy").

For each particle s the paper weighs the regret expected under s against the fall of the entropy of
the particle weights, with the reward drawn from s. That gain is not a mutual information and can be
negative; it is floored at zero. The particle is drawn first and its optimal mixture played, so the
marginal law is Σ_s w_s π_s.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from cocobandits.inference.weights import average, entropy
from cocobandits.models.base import Belief, PopulationModel
from cocobandits.policies.acquisitions.base import Acquisition
from cocobandits.policies.acquisitions.information import best_mixture
from cocobandits.types import ArmValues, ArmVector, LogWeights, Scalar, Values

# Rewards further outside the range of arm means than this many deviations hardly ever happen.
_TAIL = 5.0
_TINY = float(np.finfo(float).tiny)
_FEWEST_REWARDS, _MOST_REWARDS = 64, 512


class GidsReading(NamedTuple):
    """What one particle expects of each arm."""

    regret: ArmVector
    predictive: ArmValues


@dataclass(frozen=True)
class GlobalInformationDirectedSampling(Acquisition[GidsReading]):
    """The paper's GIDS, with its optimum in closed form.

    `lowest` to `highest` in `num_rewards` even steps are the rewards over which gains are summed.
    """

    lowest: float
    highest: float
    num_rewards: int

    @classmethod
    def for_model(cls, model: PopulationModel) -> "GlobalInformationDirectedSampling":
        """Lay out rewards one noise deviation apart, or closer, over all that can happen.

        Predictive densities are at least as wide as the noise, and sums over a grid of that
        spacing integrate a Gaussian to nine digits. Noise below about 1/500 of the range gets a
        wider spacing; the shares of rewards are normalised over the grid all the same.
        """
        low, high = model.mean_range
        lowest, highest = low - _TAIL * model.reward_noise, high + _TAIL * model.reward_noise
        steps = math.ceil((highest - lowest) / model.reward_noise)
        return cls(lowest, highest, min(max(steps + 1, _FEWEST_REWARDS), _MOST_REWARDS))

    def read(self, belief: Belief) -> GidsReading:
        """Read expected regret and the density of the next reward."""
        return GidsReading(
            belief.expected_best() - belief.mean(), belief.predictive(self._rewards())
        )

    def combine(self, log_weights: LogWeights, readings: GidsReading) -> ArmVector:
        """Solve each particle's trade-off and average the solutions."""
        gains = jax.vmap(self._gains, in_axes=(None, 1), out_axes=1)(
            log_weights, readings.predictive
        )
        mixtures = jax.vmap(best_mixture)(readings.regret, gains)
        return average(log_weights, mixtures)

    def _gains(
        self, log_weights: LogWeights, predictive: Float[Array, "particle value"]
    ) -> Float[Array, " particle"]:
        """Compute H(w) - E_{r|s}[H(w | r)] for one arm and every particle s, floored at zero."""

        def entropy_after(density: Float[Array, " particle"]) -> Scalar:
            return entropy(log_weights + jnp.log(jnp.maximum(density, _TINY)))

        after = jax.vmap(entropy_after)(predictive.T)
        # Dividing by the sum makes the grid of rewards a distribution for every particle.
        shares = predictive / jnp.sum(predictive, axis=1, keepdims=True)
        return jnp.maximum(entropy(log_weights) - shares @ after, 0.0)

    def _rewards(self) -> Values:
        return jnp.linspace(self.lowest, self.highest, self.num_rewards)
