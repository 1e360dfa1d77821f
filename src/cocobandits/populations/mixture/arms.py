"""What each component of a mixture believes about each arm: the Gaussian family.

Owns the contract of a family of arms, and what is asked of independent ones; knows nothing of users
or particles. Expectations over the next reward of an arm are summed over rewards that all arms
share, or that each arm has of its own.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtr, ndtri
from jaxtyping import Array, Bool, Float, Int

from cocobandits.numerics.blocks import block_size
from cocobandits.numerics.reward_grid import RewardGrid
from cocobandits.populations.base import FAR_BELOW
from cocobandits.types import ArmValues, Rewards, Values
from cocobandits.users.statistics import Statistics

T = TypeVar("T")

ComponentArms = Float[Array, "component arm"]
ComponentValues = Float[Array, "component arm value"]
Shares = Float[Array, " component"]

LEAST_VARIANCE = 1e-14
# Nodes on which the best of all arms is found, and how many deviations they reach.
_NUM_NODES, REACH = 48, 4.5
# Arms narrower than this share of the widest one that can be best are held for that wide.
_LEAST_RATIO = 1e-4
# How many deviations around components of at least this share rewards are looked ahead to.
_REWARD_REACH, LEAST_SHARE = 4.5, 1e-6
_LEAST_SLOPE = 1e-9
# The most components that are written out, since compilers vectorise that.
_MOST_WRITTEN_OUT = 16


class Contest(NamedTuple):
    """Who is best within each component, and how good the best is."""

    best_probability: ComponentArms
    mean: Float[Array, " component"]


@runtime_checkable
class IndependentArms(Protocol):
    """Arms that are independent within each component, so that who is best is one integral."""

    def mean(self) -> ComponentArms:
        """Compute E[μ_a]."""

    def variance(self) -> ComponentArms:
        """Compute Var(μ_a)."""

    def contest(self) -> Contest:
        """Integrate over the largest of all means."""

    def contest_and_reward(self, rewards: Rewards) -> tuple[Contest, ComponentValues]:
        """Compute also P(a is best | component, next reward of a)."""

    def joint(self, shares: Shares, rewards: Rewards) -> ComponentValues:
        """Compute how likely, or how dense, a component and the next reward of every arm are."""

    def cumulative(self, values: Values) -> ComponentValues:
        """Compute P(μ_a ≤ value)."""


@runtime_checkable
class Arms(Protocol):
    """The arms of each component, which may depend on each other."""

    @property
    def support(self) -> tuple[float, float]:
        """Where means can lie."""

    @property
    def num_places(self) -> int:
        """Into how many components with independent arms each one is expanded."""

    def mean(self) -> ComponentArms:
        """Compute E[μ_a]."""

    def variance(self) -> ComponentArms:
        """Compute Var(μ_a)."""

    def noise_variance(self) -> Float[Array, " component"]:
        """Compute the variance of a reward around its arm mean, averaged over arms."""

    def cumulative(self, values: Values) -> ComponentValues:
        """Compute P(μ_a ≤ value)."""

    def predictive(self, shares: Shares, rewards: Rewards) -> ArmValues:
        """Add up how likely, or how dense, the next reward of every arm is."""

    def mean_and_reward(self, shares: Shares, rewards: Rewards) -> Float[Array, "other arm value"]:
        """Add up the same, times what all means are once the reward is seen."""

    def next_rewards(self, shares: Shares, grid: RewardGrid) -> Rewards:
        """Lay out rewards over which expectations of the next reward are summed."""

    def condition(self, statistics: Statistics) -> tuple["Arms", Float[Array, " component"]]:
        """Condition on rewards; also return the log of their density under each component."""

    def among(self, is_eligible: Bool[Array, " arm"]) -> "Arms":
        """Put all other arms out of the contest."""

    def expanded(
        self, log_weights: Float[Array, " component"]
    ) -> tuple[Float[Array, " place"], IndependentArms]:
        """List components within which arms are independent."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GaussianArms:
    """Normal arm means, and normal rewards around them."""

    location: Float[Array, "*each component arm"]
    spread: Float[Array, "*each component arm"]  # variances
    noise: Float[Array, "*each component"]  # standard deviation of a reward

    @property
    def support(self) -> tuple[float, float]:
        """Anywhere."""
        return -math.inf, math.inf

    def mean(self) -> ComponentArms:
        """Compute E[μ_a]."""
        return self.location

    def variance(self) -> ComponentArms:
        """Compute Var(μ_a)."""
        return self.spread

    def noise_variance(self) -> Float[Array, " component"]:
        """Square the deviation."""
        return self.noise**2

    @property
    def num_places(self) -> int:
        """One: they are independent already."""
        return 1

    def component(self, number: int | Int[Array, ""]) -> "GaussianArms":
        """Take one component, on an axis of length one."""
        return GaussianArms(
            self.location[number][None], self.spread[number][None], self.noise[number][None]
        )

    def contest(self) -> Contest:
        """Integrate over the largest of all means."""
        return self._contest()[0]

    def contest_and_reward(self, rewards: Rewards) -> tuple[Contest, ComponentValues]:
        """Compute also P(a is best | r_a) = Φ((E[μ_a | r_a] - h) / √(Var(μ_a | r_a) + v)).

        Hurdle h and variance v of the best rival are those with which P(a is best) and its slope
        in E[μ_a] are right before the reward; with one rival that is exact.
        """
        contest, slope = self._contest()
        win = jnp.clip(contest.best_probability, LEAST_SHARE, 1 - LEAST_SHARE)
        quantile, own = ndtri(win), jnp.sqrt(self.spread)
        height = jnp.exp(-(quantile**2) / 2) / math.sqrt(2 * math.pi)
        before = jnp.maximum(height / jnp.maximum(slope, _LEAST_SLOPE), own)
        hurdle, rival = self.location - quantile * before, before**2 - self.spread
        mean, variance = self._after(rewards)
        distance = (mean - hurdle[:, :, None]) / jnp.sqrt(variance + rival[:, :, None])
        return contest, _normal_cumulative(distance)

    def _contest(self) -> tuple[Contest, ComponentArms]:
        """Integrate ∏ Φ_b(t) · φ_a(t)/Φ_a(t) over t; also compute dP(a is best) / dE[μ_a].

        Below `low` some arm is almost surely better. What an arm of deviation v may still win
        lies within 2 · reach · v above it, so nodes whose distance grows in proportion to that
        from `low` suit narrow and wide arms alike: t = low + scale · sinh(u), u in even steps.
        """
        deviation = jnp.sqrt(jnp.maximum(self.spread, LEAST_VARIANCE))
        low = jnp.max(self.location - REACH * deviation, axis=1, keepdims=True)
        tops = self.location + REACH * deviation
        widest = jnp.max(jnp.where(tops >= low, deviation, 0.0), axis=1, keepdims=True)
        deviation = jnp.maximum(deviation, _LEAST_RATIO * widest)
        low = jnp.max(self.location - REACH * deviation, axis=1, keepdims=True)
        tops = self.location + REACH * deviation
        scale = jnp.min(jnp.where(tops >= low, deviation, jnp.inf), axis=1, keepdims=True)
        end = jnp.arcsinh((jnp.max(tops, axis=1, keepdims=True) - low) / scale)
        even = jnp.linspace(0.0, 1.0, _NUM_NODES, dtype=low.dtype)[None, :]
        points = low + scale * jnp.sinh(end * even)
        weights = scale * end * jnp.cosh(end * even) / (_NUM_NODES - 1)
        inverse = (1 / deviation)[:, :, None]
        distance = (points[:, None, :] - self.location[:, :, None]) * inverse
        below = _normal_cumulative(distance)
        hazard = inverse / math.sqrt(2 * math.pi) * jnp.exp(-(distance**2) / 2) / below
        return _settle(points, weights, hazard, below)

    def joint(self, shares: Shares, rewards: Rewards) -> ComponentValues:
        """Compute a density as wide as the belief and the noise together."""
        variance = self.spread + self.noise[:, None] ** 2
        # All that does not depend on the reward comes first: five times as fast.
        height = (shares[:, None] / jnp.sqrt(2 * math.pi * variance))[:, :, None]
        sharpness = (-0.5 / variance)[:, :, None]
        distance = of_arms(rewards) - self.location[:, :, None]
        return height * jnp.exp(sharpness * distance**2)

    def _after(
        self, rewards: Rewards
    ) -> tuple[ComponentValues, Float[Array, "component arm #value"]]:
        """Move the mean towards the reward, by the share of the variance that is not noise."""
        noise = self.noise[:, None] ** 2
        share = self.spread / (self.spread + noise)
        start = (1 - share) * self.location
        mean = start[:, :, None] + share[:, :, None] * of_arms(rewards)
        return mean, (share * noise)[:, :, None]

    def predictive(self, shares: Shares, rewards: Rewards) -> ArmValues:
        """Add up the densities."""
        return _add_up(
            len(shares), lambda each: self.component(each).joint(shares[each][None], rewards)[0]
        )

    def mean_and_reward(self, shares: Shares, rewards: Rewards) -> Float[Array, "other arm value"]:
        """A reward moves its own arm, and reweights all components."""
        identity = jnp.eye(self.spread.shape[1], dtype=self.spread.dtype)
        return regress(self, self.spread[:, :, None] * identity[None], shares, rewards)

    def next_rewards(self, shares: Shares, grid: RewardGrid) -> Rewards:
        """Lay out as many rewards in even steps over all that is expected of each arm."""
        reach = _REWARD_REACH * jnp.sqrt(self.spread + self.noise[:, None] ** 2)
        is_likely = shares[:, None] >= LEAST_SHARE
        low = jnp.min(jnp.where(is_likely, self.location - reach, jnp.inf), axis=0)
        high = jnp.max(jnp.where(is_likely, self.location + reach, -jnp.inf), axis=0)
        even = jnp.linspace(0.0, 1.0, grid.capacity, dtype=low.dtype)
        return low[:, None] + (high - low)[:, None] * even[None, :]

    def cumulative(self, values: Values) -> ComponentValues:
        """Compute Φ((value - mean) / deviation)."""
        deviation = jnp.sqrt(jnp.maximum(self.spread, LEAST_VARIANCE))[:, :, None]
        return ndtr((values[None, None, :] - self.location[:, :, None]) / deviation)

    def condition(
        self, statistics: Statistics
    ) -> tuple["GaussianArms", Float[Array, " component"]]:
        """Weigh each arm's rewards against its own spread."""
        noise = self.noise[:, None] ** 2
        count, total = statistics.count[None, :], statistics.total[None, :]
        share = noise / (noise + count * self.spread)
        location = share * self.location + self.spread * share * total / noise
        log_evidence = gaussian_log_evidence(self.location, self.spread, self.noise, statistics)
        return GaussianArms(location, self.spread * share, self.noise), log_evidence

    def among(self, is_eligible: Bool[Array, " arm"]) -> "GaussianArms":
        """Move the other arms far below."""
        location = jnp.where(is_eligible, self.location, FAR_BELOW)
        return GaussianArms(location, self.spread, self.noise)

    def expanded(
        self, log_weights: Float[Array, " component"]
    ) -> tuple[Float[Array, " place"], "GaussianArms"]:
        """Return them as they are."""
        return log_weights, self


def gaussian_log_evidence(
    location: ComponentArms,
    spread: ComponentArms,
    noise: Float[Array, " component"],
    statistics: Statistics,
) -> Float[Array, " component"]:
    """Sum log p(rewards of an arm | component) over arms; an arm without rewards adds nothing."""
    variance = noise[:, None] ** 2
    count = statistics.count[None, :]
    average = (statistics.total / jnp.maximum(statistics.count, 1.0))[None, :]
    stretch = 1 + count * spread / variance
    misfit = count * (average - location) ** 2 / (variance * stretch)
    scatter = statistics.total_square[None, :] - statistics.total[None, :] * average
    constant = count * jnp.log(2 * math.pi * variance) + scatter / variance
    return -jnp.sum(jnp.log(stretch) + misfit + constant, axis=1) / 2


def of_arms(rewards: Rewards) -> Float[Array, "1 #arm value"]:
    """Add the axis of components, and that of arms where all have the same rewards."""
    return jnp.atleast_2d(rewards)[None]


def regress(
    arms: GaussianArms,
    covariance: Float[Array, "component other arm"],
    shares: Shares,
    rewards: Rewards,
) -> Float[Array, "other arm value"]:
    """Add up p(c) p(r_a | c) E[μ_b | c, r_a], with V the covariance of the means of component c.

    E[μ_b | c, r_a] = m_b + V_ab / (V_aa + σ²) (r_a - m_a) is linear in the reward.
    """
    variance = jnp.diagonal(covariance, axis1=1, axis2=2)
    marginal = GaussianArms(arms.location, variance, arms.noise)
    slope = covariance / (variance + arms.noise[:, None] ** 2)[:, None, :]
    start = arms.location[:, :, None] - slope * arms.location[:, None, :]

    def term(each: int | Int[Array, ""]) -> Float[Array, "other arm value"]:
        density = marginal.component(each).joint(shares[each][None], rewards)
        means = start[each][:, :, None] + slope[each][:, :, None] * of_arms(rewards)
        return density * means

    return _add_up(len(shares), term)


def _add_up(num_components: int, term: Callable[[int | Int[Array, ""]], T]) -> T:
    """Sum over components, a block at a time."""
    size = block_size(num_components, _MOST_WRITTEN_OUT)

    def add(one: T, other: T) -> T:
        return jax.tree.map(jnp.add, one, other)

    def block(start: int | Int[Array, ""]) -> T:
        return reduce(add, (term(start + number) for number in range(size)))

    if size == num_components:
        return block(0)
    rest = num_components // size
    return jax.lax.fori_loop(1, rest, lambda each, sums: add(sums, block(each * size)), block(0))


def _settle(
    points: Float[Array, "component node"],
    weights: Float[Array, "component node"],
    hazard: ComponentValues,
    below: ComponentValues,
) -> tuple[Contest, ComponentArms]:
    """Sum over nodes at which the largest mean may be; and the density of ties with a."""
    best = jnp.prod(below, axis=1) * weights
    wins, total = jnp.einsum("can,cn->ca", hazard, best), jnp.sum(hazard, axis=1)
    density = total * best
    mass = jnp.sum(density, axis=1, keepdims=True)
    rivals = hazard * (total[:, None, :] - hazard)
    contest = Contest(wins / mass, jnp.sum(points * density, axis=1) / mass[:, 0])
    return contest, jnp.einsum("can,cn->ca", rivals, best) / mass


def _normal_cumulative(distance: Array) -> Array:
    # Not `ndtr`, whose tails cost three times as much and do not matter within the reach.
    return 0.5 + 0.5 * jax.lax.erf(distance / math.sqrt(2))
