"""Information-directed sampling for this user and for everyone who comes later (CoIDS).

Regret and information are taken under the whole mixture of particles. An arm's next reward r_a
informs about this user's best arm A* and about the population f. Both are mutual informations:
never negative, and the same if a particle is held twice at half the weight. If it is not known how
often a user is served, the mixture of arms with the least

    (expected regret)² / (I(A*; r_a) + population_weight · I(f; r_a))

is played. If it is known, and n steps are left, the present one included, an arm is worth

    Q_a = E[μ_a] + (n - 1) E[max_b E[μ_b | r_a]]

under the mixture of particles, as for `oracle-plan` under the truth. A planner that knew the
population f would improve this user's expected return by

    W = E_f[max_a Q_a^f] - max_a Q_a

and the mixture of arms with the least

    (population_weight · W + max_b Q_b - Q_a)² / I(f; r_a)

is played. As the population becomes known W goes to zero, and the plan is left.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from cocobandits.inference.weights import average
from cocobandits.numerics.blocks import once
from cocobandits.numerics.reward_grid import RewardGrid
from cocobandits.numerics.traced import traced
from cocobandits.policies.coco.acquisition import (
    LEAST_DENSITY,
    ROUNDING,
    Acquisition,
    Rationales,
    UserReadings,
    as_shares,
    best_mixture,
    log_positive,
)
from cocobandits.populations.base import Belief
from cocobandits.types import ArmValues, ArmVector, LogWeights, Rewards, Scalar

# What each particle expects of the next reward of every arm.
Predictions = Float[Array, "*particle arm value"]
Means = Float[Array, "*particle arm"]
# Means of arms with each next reward of another one.
MeansAfter = Float[Array, "*particle other arm value"]


class Outlook(NamedTuple):
    """Regret under the mixture of particles, and each arm's next reward with the best arm."""

    regret: ArmVector
    joint: Float[Array, "best arm value"]


class Prospects(NamedTuple):
    """Expected regret of each arm, and the information of its reward in nats."""

    regret: ArmVector
    about_person: ArmVector
    about_population: ArmVector


class PlannedReading(NamedTuple):
    """What one particle expects of the next rewards, and of all arms once one of them is seen."""

    predictions: Predictions
    mean: Means
    after: MeansAfter


class TwoPurposes(Acquisition):
    """A rule that learns for this user, and further for the population."""

    rewards: RewardGrid

    @abstractmethod
    def choices(self, readings: UserReadings) -> tuple[Prospects, ArmVector, ArmVector]:
        """Return the prospects, the choice for this user alone, and that for all users."""

    def next_rewards(self, together: Belief) -> Rewards:
        """Lay out the rewards that all expectations are summed over."""
        return together.next_rewards(self.rewards)

    def read_together(self, belief: Belief, rewards: Rewards) -> Outlook:
        """Compute expected regret, and next rewards with the best arm."""
        best, joint = belief.best_outlook(rewards)
        joint = joint + LEAST_DENSITY
        total = jnp.sum(joint, axis=(0, 2), keepdims=True)
        return Outlook(best - belief.mean(), joint / total)

    def combine(self, readings: UserReadings) -> ArmVector:
        """Choose for this user and the population."""
        return self.choices(readings)[2]

    def rationales(self, readings: UserReadings) -> Rationales:
        """Remove the purposes one after the other, and compare."""
        prospects, alone, chosen = self.choices(readings)
        at_once = greedy(prospects.regret)
        return Rationales(*prospects, at_once, alone - at_once, chosen - alone)


@traced("rewards", "population_weight", choices=())
@dataclass(frozen=True)
class CoInformationDirectedSampling(TwoPurposes):
    """Play the best trade-off of regret now, and information about this user and all others."""

    rewards: RewardGrid
    population_weight: float = 1.0

    def read(self, belief: Belief, rewards: Rewards) -> ArmValues:
        """Predict the next rewards."""
        return as_shares(belief.predictive(rewards))

    def choices(self, readings: UserReadings) -> tuple[Prospects, ArmVector, ArmVector]:
        """Minimise squared regret per nat."""
        prospects = expect(readings.log_weights, readings.each, readings.together)
        regret, about_person, about_population = prospects
        gain = about_person + self.population_weight * about_population
        return prospects, best_mixture(regret, about_person), best_mixture(regret, gain)


@traced("rewards", "steps_per_user", "population_weight", choices=())
@dataclass(frozen=True)
class PlannedInformationDirectedSampling(TwoPurposes):
    """Play the plan for this user, as far as the population is known."""

    rewards: RewardGrid
    steps_per_user: int
    population_weight: float = 1.0

    def read(self, belief: Belief, rewards: Rewards) -> PlannedReading:
        """Predict the next rewards, and means together with the next reward."""
        mean, predictive = belief.mean(), once(belief.predictive(rewards))
        after = once(belief.mean_and_reward(rewards))
        # Where all rewards lie beyond the grid, none changes a mean.
        after = after + LEAST_DENSITY * mean[:, None, None].astype(after.dtype)
        total = jnp.sum(predictive + LEAST_DENSITY, axis=1, dtype=float).astype(after.dtype)
        return PlannedReading(as_shares(predictive), mean, after / total[None, :, None])

    def choices(self, readings: UserReadings) -> tuple[Prospects, ArmVector, ArmVector]:
        """Follow the plan, and minimise squared loss per nat about the population."""
        log_weights, each, together, _ = readings
        prospects = expect(log_weights, each.predictions, together)
        loss, worth = self._plan(readings)
        chosen = best_mixture(self.population_weight * worth + loss, prospects.about_population)
        return prospects, greedy(loss), chosen

    def _plan(self, readings: UserReadings) -> tuple[ArmVector, Scalar]:
        """Compute the loss of each arm against the best plan, and W."""
        log_weights, each = readings.log_weights, readings.each
        steps_after = jnp.maximum(self.steps_per_user - readings.num_rewards, 1.0) - 1.0
        mean, after = (average(log_weights, part) for part in (each.mean, each.after))
        value = self._value(mean, after, steps_after)
        knowing = jnp.max(self._value(each.mean, each.after, steps_after), axis=1)
        # Who knows more plans no worse; rounding may say otherwise.
        worth = jnp.maximum(average(log_weights, knowing) - jnp.max(value), 0.0)
        return jnp.max(value) - value, worth

    def _value(self, mean: Means, after: MeansAfter, steps_after: Scalar) -> Means:
        """Compute Q: the best mean as it is, and what looking ahead adds, never below zero."""
        largest = (
            sum_of_largest(after)
            if self.rewards.is_dense
            else jnp.sum(jnp.max(after, axis=-3), axis=-1)
        )
        gain = jnp.maximum(largest - jnp.max(jnp.sum(after, axis=-1, dtype=float), axis=-2), 0.0)
        return mean + steps_after * (jnp.max(mean, axis=-1, keepdims=True) + gain)


def sum_of_largest(curves: Float[Array, "*particle other arm value"]) -> Means:
    """Integrate the largest of several smooth curves, given at even steps, to third order.

    The sum over steps is off by the kinks, where two curves cross. If their differences at both
    ends of that step are d and d', the largest lies d d' / 2(d + d') below its chord on average;
    sums of what is smooth elsewhere make up for (d + d') / 12 of that.
    """
    # By number, not by comparing: a compiler may compute a curve twice, and round it in two ways.
    is_top = jax.nn.one_hot(jnp.argmax(curves, axis=-3), curves.shape[-3], axis=-3, dtype=bool)
    top = jnp.max(curves, axis=-3)
    left, right = curves[..., :-1], curves[..., 1:]

    def at_other_end(curve: Array, is_chosen: Array) -> Array:
        return jnp.max(jnp.where(is_chosen, curve, -jnp.inf), axis=-3)

    fall = top[..., :-1] - at_other_end(left, is_top[..., 1:])
    rise = top[..., 1:] - at_other_end(right, is_top[..., :-1])
    both = fall + rise
    excess = fall * rise / (2 * jnp.where(both > 0, both, 1.0)) - both / 12
    has_kink = (fall > 0) & (rise > 0)
    excess = jnp.where(has_kink, excess, 0.0)
    return jnp.sum(top, axis=-1, dtype=float) - jnp.sum(excess, axis=-1, dtype=float)


def expect(log_weights: LogWeights, predictions: Predictions, outlook: Outlook) -> Prospects:
    """Compute regret and both informations under the mixture of particles."""
    joint = outlook.joint
    independent = jnp.sum(joint, axis=2)[:, :, None] * jnp.sum(joint, axis=0)[None, :, :]
    about_person = _divergence(joint, independent, axes=(0, 2))
    expected = average(log_weights, predictions)
    surprise = _divergence(predictions, expected[None, :, :], axes=(2,))
    return Prospects(outlook.regret, about_person, average(log_weights, surprise))


def greedy(loss: ArmVector) -> ArmVector:
    """Share all probability equally among the arms that lose least."""
    is_least = loss <= jnp.min(loss) + ROUNDING * jnp.max(jnp.abs(loss))
    return is_least / jnp.sum(is_least)


def _divergence(
    actual: Float[Array, "..."], reference: Float[Array, "..."], axes: tuple[int, ...]
) -> Float[Array, "..."]:
    """Compute Σ p log(p/q); rounding may leave it slightly negative."""
    ratio = log_positive(actual) - log_positive(reference)
    return jnp.maximum(jnp.sum(actual * ratio, axis=axes), 0.0)
