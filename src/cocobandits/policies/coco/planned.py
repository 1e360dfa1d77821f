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
from cocobandits.models.rewards import RewardGrid
from cocobandits.policies.coco.acquisition import Acquisition, Evidence, Motives
from cocobandits.policies.coco.coids import Outlook, Prospects, expect, greedy, look_out
from cocobandits.policies.coco.information import LEAST_DENSITY, as_shares, best_mixture
from cocobandits.types import ArmVector, Scalar


class PlannedReading(NamedTuple):
    """What one particle expects of the next rewards, and of all arms once one of them is seen."""

    predictions: Float[Array, "*particle arm value"]
    mean: Float[Array, "*particle arm"]
    after: Float[Array, "*particle other arm value"]


@dataclass(frozen=True)
class PlannedInformationDirectedSampling(Acquisition[PlannedReading, Outlook]):
    """Play the plan for this user, as far as the population is known."""

    rewards: RewardGrid
    steps_per_user: int
    population_weight: float = 1.0

    @classmethod
    def for_model(
        cls, model: PopulationModel, steps_per_user: int, population_weight: float
    ) -> "PlannedInformationDirectedSampling":
        """Take the rewards that the model lays out."""
        return cls(model.reward_grid, steps_per_user, population_weight)

    def read(self, belief: Belief) -> PlannedReading:
        """Read predictions, and means together with the next reward."""
        rewards = self.rewards.values()
        mean, predictive = belief.mean(), belief.predictive(rewards)
        # Where all rewards lie beyond the grid, none changes a mean.
        after = belief.mean_and_reward(rewards) + LEAST_DENSITY * mean[:, None, None]
        total = jnp.sum(predictive + LEAST_DENSITY, axis=1)
        return PlannedReading(as_shares(predictive), mean, after / total[None, :, None])

    def read_together(self, belief: Belief) -> Outlook:
        """Read expected regret, and next rewards with the best arm."""
        return look_out(belief, self.rewards.values())

    def combine(self, evidence: Evidence) -> ArmVector:
        """Minimise squared loss per nat about the population."""
        return self._choose(_prospects(evidence), *self._plan(evidence))

    def motives(self, evidence: Evidence) -> Motives:
        """Take the population away, and then the plan."""
        prospects = _prospects(evidence)
        loss, worth = self._plan(evidence)
        plan, at_once = greedy(loss), greedy(prospects.regret)
        chosen = self._choose(prospects, loss, worth)
        return Motives(*prospects, at_once, plan - at_once, chosen - plan)

    def _plan(self, evidence: Evidence) -> tuple[ArmVector, Scalar]:
        """Compute what each arm loses against the best plan, and W."""
        log_weights, each = evidence.log_weights, evidence.each
        steps_after = jnp.maximum(self.steps_per_user - evidence.num_rewards, 1.0) - 1.0
        mean, after = (average(log_weights, part) for part in (each.mean, each.after))
        value = _value(mean, after, steps_after)
        knowing = jnp.max(_value(each.mean, each.after, steps_after), axis=1)
        # Who knows more plans no worse; rounding may say otherwise.
        worth = jnp.maximum(average(log_weights, knowing) - jnp.max(value), 0.0)
        return jnp.max(value) - value, worth

    def _choose(self, prospects: Prospects, loss: ArmVector, worth: Scalar) -> ArmVector:
        return best_mixture(self.population_weight * worth + loss, prospects.about_population)


def _prospects(evidence: Evidence) -> Prospects:
    return expect(evidence.log_weights, evidence.each.predictions, evidence.together)


def _value(
    mean: Float[Array, "*particle arm"],
    after: Float[Array, "*particle other arm value"],
    steps_after: Scalar,
) -> Float[Array, "*particle arm"]:
    best_after = jnp.sum(jnp.max(after, axis=-3), axis=-1)
    return mean + steps_after * best_after
