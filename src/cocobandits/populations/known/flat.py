"""No population at all: every arm mean uniform on the range, independent of every other.

What is believed of a user then rests on that user's rewards alone (independent Thompson sampling,
paper, "Experiments": Ind-TS). Exact for any number of arms.
"""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float

from cocobandits.numerics.quadrature import Quadrature, integrate_above
from cocobandits.numerics.traced import traced
from cocobandits.populations.base import FAR_BELOW, Belief, PopulationModel
from cocobandits.populations.truncated_normal import (
    interval_log_likelihood,
    quadrature,
    truncated,
)
from cocobandits.types import (
    ArmValues,
    ArmVector,
    Context,
    Parameters,
    Scalar,
    Values,
)
from cocobandits.users.statistics import Statistics

_NUM_PIECES = 64


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FlatBelief(Belief):
    """Independent truncated normals, one per arm."""

    statistics: Statistics
    low: Float[ArrayLike, "*each"]
    high: Float[ArrayLike, "*each"]
    reward_noise: Float[ArrayLike, "*each"]
    is_eligible: Bool[Array, "*each arm"]

    def mean(self) -> ArmVector:
        """Compute E[μ_a]."""
        rule, density, _ = self._rule()
        return jnp.where(self.is_eligible, density @ (rule.weights * rule.points), FAR_BELOW)

    def variance(self) -> ArmVector:
        """Compute Var(μ_a)."""
        rule, density, _ = self._rule()
        centred = rule.points[None, :] - self.mean()[:, None]
        return (density * centred**2) @ rule.weights

    def best_probability(self) -> ArmVector:
        """Compute ∫ p_a(t) ∏_{b≠a} P(μ_b ≤ t) dt."""
        rule, density, below = self._rule()
        wins = (density * _product_of_others(below)) @ rule.weights
        return wins / jnp.sum(wins)

    def expected_best(self) -> Scalar:
        """Compute E[max_a μ_a]."""
        rule, density, below = self._rule()
        return jnp.sum((density * _product_of_others(below)) @ (rule.weights * rule.points))

    def values(self) -> Values:
        """Take the points of the quadrature."""
        return self._rule()[0].points

    def cumulative(self, values: Values) -> ArmValues:
        """Compute P(μ_a ≤ value)."""
        inside = jnp.clip(values, self.low, self.high)
        return self._truncated(inside)[1]

    def predictive(self, rewards: Values) -> ArmValues:
        """Compute the density of the next reward: the ratio of two evidences."""

        def next_evidence(reward: Scalar) -> ArmVector:
            following = self.statistics.extend(reward)
            return interval_log_likelihood(following, self.reward_noise, self._edges())[:, 0]

        now = interval_log_likelihood(self.statistics, self.reward_noise, self._edges())[:, 0]
        density = jnp.exp(jax.vmap(next_evidence, out_axes=1)(rewards) - now[:, None])
        return jnp.where(self.is_eligible[:, None], density, 0.0)

    def best_and_reward(self, rewards: Values) -> Float[Array, "best arm value"]:
        """Integrate over the pulled arm's mean, and over the best one's above it."""
        rule, density, below = self._rule()
        whole = jnp.zeros(len(rule.points), dtype=int)
        distance = (rewards[None, :] - rule.points[:, None]) / self.reward_noise
        noise = jnp.exp(-(distance**2) / 2) / (self.reward_noise * jnp.sqrt(2 * jnp.pi))

        def wins(best: int, arm: int) -> Values:
            others = [other for other in range(len(below)) if other not in (best, arm)]
            rest = jnp.prod(below[jnp.asarray(others, dtype=int)], axis=0)
            if best == arm:
                return rest
            return integrate_above(rule, whole, density[best] * rest)

        arms = range(len(below))
        joint = jnp.stack([jnp.stack([wins(best, arm) for arm in arms]) for best in arms])
        return (joint * (density * rule.weights[None, :])[None]) @ noise

    def pair_probability(self, first: int, second: int, edges: Values) -> Float[Array, "bin bin"]:
        """Multiply the bin probabilities of two arms."""
        shares = jnp.diff(self.cumulative(edges), axis=1)
        return jnp.outer(shares[first], shares[second])

    def condition(self, statistics: Statistics) -> "FlatBelief":
        """Add the further rewards."""
        total = self.statistics.plus(statistics)
        return replace(self, statistics=total)

    def among(self, is_eligible: Bool[Array, " arm"]) -> "FlatBelief":
        """Put the other arms out of the contest."""
        return replace(self, is_eligible=is_eligible)

    def blended(self, log_shares: Float[Array, " each"]) -> "FlatBelief":
        """Take any: they are all the same."""
        del log_shares
        return jax.tree.map(lambda part: part[0], self)

    def _edges(self) -> Values:
        return jnp.asarray([self.low, self.high])

    def _rule(self) -> tuple[Quadrature, ArmValues, ArmValues]:
        # The product of many flat distribution functions is steep near the top of the range.
        pieces = jnp.linspace(self.low, self.high, _NUM_PIECES + 1)
        rule = quadrature(self.statistics, self.reward_noise, pieces)
        return rule, *self._truncated(rule.points)

    def _truncated(self, points: Values) -> tuple[ArmValues, ArmValues]:
        edges, cells = jnp.array([self.low, self.high]), jnp.zeros(points.shape, dtype=int)
        density, below = truncated(self.statistics, self.reward_noise, edges, cells, points)
        is_eligible = self.is_eligible[:, None]
        return jnp.where(is_eligible, density, 0.0), jnp.where(is_eligible, below, 1.0)


@traced("low", "high", "noise", choices=("arms",))
@dataclass(frozen=True)
class FlatModel(PopulationModel):
    """The population of which nothing is known and nothing is learned: no parameters."""

    arms: int
    low: float
    high: float
    noise: float

    @property
    def num_parameters(self) -> int:
        """None."""
        return 0

    @property
    def num_arms(self) -> int:
        """Number of arms K."""
        return self.arms

    @property
    def mean_range(self) -> tuple[float, float]:
        """The range of the uniform prior."""
        return self.low, self.high

    @property
    def reward_noise(self) -> float:
        """Standard deviation σ of a reward."""
        return self.noise

    def with_arm(self) -> "FlatModel":
        """Know as little of another arm."""
        return replace(self, arms=self.arms + 1)

    def log_evidence_at(
        self, parameters: Parameters, context: Context, statistics: Statistics
    ) -> Scalar:
        """Compute log p(history), the same for every context."""
        del parameters, context
        edges = jnp.asarray([self.low, self.high])
        return jnp.sum(interval_log_likelihood(statistics, self.noise, edges))

    def posterior_at(
        self, parameters: Parameters, context: Context, statistics: Statistics
    ) -> FlatBelief:
        """Tilt the uniform prior by the user's rewards."""
        del parameters, context
        everyone = jnp.ones(self.arms, dtype=bool)
        return FlatBelief(statistics, self.low, self.high, self.noise, everyone)


def _product_of_others(below: ArmValues) -> ArmValues:
    """Multiply the distribution functions of all arms but one, for each arm."""
    # Products from both sides, since dividing the full product by one factor may be 0/0.
    ones = jnp.ones((1, below.shape[1]))
    before = jnp.cumprod(jnp.concatenate([ones, below[:-1]]), axis=0)
    after = jnp.cumprod(jnp.concatenate([ones, below[:0:-1]]), axis=0)[::-1]
    return before * after
