"""CoIDS where it is known how often a user is served: plan for this user, inform about all others.

With n steps left, the present one included, an arm is worth what `oracle-plan` takes it for, under
the mixture of particles:

    Q_a = E[μ_a] + (n - 1) E[max_b E[μ_b | r_a]]

Who knew the population f would plan under it, and do better for this user by

    W = E_f[max_a Q_a^f] - max_a Q_a

on average. The mixture of arms with the least

    (population_weight · W + max_b Q_b - Q_a)² / I(f; r_a)

is played. As the population becomes known W goes to zero, and what is left is the plan.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from cocobandits.inference.weights import average
from cocobandits.models.base import Belief, PopulationModel
from cocobandits.policies.acquisitions.base import Acquisition, Motives
from cocobandits.policies.acquisitions.coids import (
    CoidsReading,
    Prospects,
    expect,
    greedy,
    read_prospects,
)
from cocobandits.policies.acquisitions.information import best_mixture
from cocobandits.policies.acquisitions.rewards import RewardGrid
from cocobandits.types import ArmVector, LogWeights, Scalar


class PlannedReading(NamedTuple):
    """What one particle expects now, and of all arms once a reward of one of them is seen."""

    now: CoidsReading
    mean: Float[Array, "*particle arm"]
    after: Float[Array, "*particle other arm value"]


@dataclass(frozen=True)
class PlannedInformationDirectedSampling(Acquisition[PlannedReading]):
    """Play the plan for this user, as far as the population is known."""

    rewards: RewardGrid
    steps_per_user: int
    population_weight: float = 1.0

    @classmethod
    def for_model(
        cls, model: PopulationModel, steps_per_user: int, population_weight: float
    ) -> "PlannedInformationDirectedSampling":
        """Lay out rewards over all that can happen."""
        return cls(RewardGrid.for_model(model), steps_per_user, population_weight)

    def read(self, belief: Belief) -> PlannedReading:
        """Read prospects, and means together with the next reward."""
        rewards = self.rewards.values()
        now, total = read_prospects(belief, rewards)
        after = belief.mean_and_reward(rewards) / total[None, :, None]
        return PlannedReading(now, belief.mean(), after)

    def combine(
        self, log_weights: LogWeights, readings: PlannedReading, num_rewards: Scalar
    ) -> ArmVector:
        """Minimise squared loss per nat about the population."""
        prospects = expect(log_weights, readings.now)
        return self._choose(prospects, *self._plan(log_weights, readings, num_rewards))

    def motives(
        self, log_weights: LogWeights, readings: PlannedReading, num_rewards: Scalar
    ) -> Motives:
        """Take the population away, and then the plan."""
        prospects = expect(log_weights, readings.now)
        loss, worth = self._plan(log_weights, readings, num_rewards)
        plan, at_once = greedy(loss), greedy(prospects.regret)
        chosen = self._choose(prospects, loss, worth)
        return Motives(*prospects, at_once, plan - at_once, chosen - plan)

    def _plan(
        self, log_weights: LogWeights, readings: PlannedReading, num_rewards: Scalar
    ) -> tuple[ArmVector, Scalar]:
        """Compute what each arm loses against the best plan, and W."""
        steps_after = jnp.maximum(self.steps_per_user - num_rewards, 1.0) - 1.0
        mean, after = (average(log_weights, part) for part in (readings.mean, readings.after))
        value = _value(mean, after, steps_after)
        knowing = jnp.max(_value(readings.mean, readings.after, steps_after), axis=1)
        # Who knows more plans no worse; rounding may say otherwise.
        worth = jnp.maximum(average(log_weights, knowing) - jnp.max(value), 0.0)
        return jnp.max(value) - value, worth

    def _choose(self, prospects: Prospects, loss: ArmVector, worth: Scalar) -> ArmVector:
        return best_mixture(self.population_weight * worth + loss, prospects.about_population)


def _value(
    mean: Float[Array, "*particle arm"],
    after: Float[Array, "*particle other arm value"],
    steps_after: Scalar,
) -> Float[Array, "*particle arm"]:
    best_after = jnp.sum(jnp.max(after, axis=-3), axis=-1)
    return mean + steps_after * best_after
