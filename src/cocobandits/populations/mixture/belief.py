"""A belief about one user's arm means that is a mixture of components."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float, Int

from cocobandits.numerics.blocks import block_size, split
from cocobandits.numerics.reward_grid import RewardGrid
from cocobandits.populations.base import Belief
from cocobandits.populations.mixture.arms import (
    LEAST_SHARE,
    Arms,
    Contest,
    IndependentArms,
    Shares,
)
from cocobandits.types import ArmValues, ArmVector, Rewards, Scalar, Values
from cocobandits.users.statistics import Statistics

T = TypeVar("T")

# Values that are laid out per arm: steps of a sixteenth of the deviation, to six of it.
_NUM_STEPS, _REACH = 81, 2.5
# Components of a mixture that are looked at together: what is made of them stays in the cache.
_COMPONENTS_AT_ONCE = 100
# The weight that all components may have together that do not matter, and between which limits of a
# single one's weight these are found: equal shares of it, doubled so many times.
_NEGLIGIBLE, _NUM_DOUBLINGS = 1e-6, 20


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class MixtureBelief(Belief):
    """Components with normalised log-weights, and the arms of each."""

    log_weights: Float[Array, "*each component"]
    arms: Arms

    @property
    def reward_noise(self) -> Scalar:  # type: ignore[override]  # others hold it
        """Standard deviation of a reward, averaged over components."""
        return jnp.sqrt(self._average(self.arms.noise_variance()))

    def mean(self) -> ArmVector:
        """Compute E[μ_a]."""
        return self._average(self.arms.mean())

    def variance(self) -> ArmVector:
        """Compute Var(μ_a): within components, and between them."""
        between = (self.arms.mean() - self.mean()[None, :]) ** 2
        return self._average(self.arms.variance() + between)

    def best_probability(self) -> ArmVector:
        """Compute P(arm a has the largest mean)."""

        def wins(shares: Array, arms: IndependentArms) -> Array:
            return jnp.sum(shares[:, None] * arms.contest().best_probability, axis=0)

        shares = self._add_up(wins)
        return shares / jnp.sum(shares)

    def expected_best(self) -> Scalar:
        """Compute E[max_a μ_a]."""
        return self._add_up(lambda shares, arms: jnp.sum(shares * arms.contest().mean))

    def values(self) -> Values:
        """Lay out values around every arm's mean, closest where most of the belief is."""
        steps = jnp.asarray(np.sinh(np.linspace(-_REACH, _REACH, _NUM_STEPS)))
        deviation = jnp.sqrt(self.variance())
        spread = (self.mean()[:, None] + deviation[:, None] * steps[None, :]).ravel()
        return jnp.clip(jnp.sort(spread), *self.arms.support)

    def cumulative(self, values: Values) -> ArmValues:
        """Compute P(μ_a ≤ value), a block of components at a time."""
        num_components, num_arms = self.arms.mean().shape
        dtype = self.arms.mean().dtype
        components = split(
            (self._shares(dtype), self.arms), block_size(num_components, _COMPONENTS_AT_ONCE)
        )

        def add(total: Array, block: tuple[Array, Arms]) -> tuple[Array, None]:
            shares, arms = block
            below = arms.cumulative(values.astype(dtype)).astype(dtype)
            return total + jnp.sum(shares[:, None, None] * below, axis=0), None

        nothing = jnp.zeros((num_arms, len(values)), dtype)
        return jax.lax.scan(add, nothing, components)[0].astype(float)

    def predictive(self, rewards: Rewards) -> ArmValues:
        """Compute the density of the next reward, in the precision of the belief."""
        dtype = self.arms.mean().dtype
        return self.arms.predictive(self._shares(dtype), rewards.astype(dtype))

    def next_rewards(self, grid: RewardGrid) -> Rewards:
        """Lay out rewards where the belief expects them, arm by arm."""
        dtype = self.arms.mean().dtype
        return self.arms.next_rewards(self._shares(dtype), grid).astype(float)

    def best_and_reward(self, rewards: Rewards) -> Float[Array, "best arm value"]:
        """Add up the components: how likely each makes a reward, and who is best in it then.

        Given component and reward, the pulled arm is best with a probability that moves with its
        mean, so that its average over rewards is exact, and the others share the rest as they do
        without the reward. What a reward says about the best arm
        by separating components is exact; what it says within a component is not.
        """
        return self.best_outlook(rewards)[1]

    def best_outlook(self, rewards: Rewards) -> tuple[Scalar, Float[Array, "best arm value"]]:
        """Add up both at once."""
        rewards = rewards.astype(self.arms.mean().dtype)

        def look_out(shares: Array, arms: IndependentArms) -> tuple[Array, Array]:
            contest, table = _best_and_reward(shares, arms, rewards)
            return jnp.sum(shares * contest.mean), table

        return self._add_up(look_out)

    def mean_and_reward(self, rewards: Rewards) -> Float[Array, "other arm value"]:
        """Add up the components, in the precision of the belief."""
        dtype = self.arms.mean().dtype
        return self.arms.mean_and_reward(self._shares(dtype), rewards.astype(dtype))

    def pair_probability(self, first: int, second: int, edges: Values) -> Float[Array, "bin bin"]:
        """Multiply the bin probabilities of two arms, where these are independent."""
        log_weights, arms = self.arms.expanded(self.log_weights)
        shares = jnp.diff(arms.cumulative(edges), axis=2)
        return jnp.einsum("c,ci,cj->ij", jnp.exp(log_weights), shares[:, first], shares[:, second])

    def condition(self, statistics: Statistics) -> "MixtureBelief":
        """Reweight the components, and condition each; in the precision of the belief."""
        arms, log_evidence = self.arms.condition(statistics)
        joint = self.log_weights + log_evidence
        after = MixtureBelief(joint - logsumexp(joint), arms)
        return jax.tree.map(lambda new, old: new.astype(old.dtype), after, self)

    def among(self, is_eligible: Bool[Array, " arm"]) -> "MixtureBelief":
        """Put the other arms out of the contest in every component."""
        return MixtureBelief(self.log_weights, self.arms.among(is_eligible))

    def blended(self, log_shares: Float[Array, " each"]) -> "MixtureBelief":
        """Put all components side by side."""
        weights = log_shares[:, None] + self.log_weights
        flat = jax.tree.map(lambda part: part.reshape(-1, *part.shape[2:]), self.arms)
        return MixtureBelief(weights.ravel(), flat)

    def _add_up(self, read: Callable[[Array, IndependentArms], T]) -> T:
        """Sum over blocks of components with independent arms; skip those that do not matter."""
        shares = self._shares(self.arms.mean().dtype)
        chosen, num_chosen = _weighty(shares)
        size = block_size(len(shares), _COMPONENTS_AT_ONCE // self.arms.num_places)
        counted = jnp.where(jnp.arange(len(shares)) < num_chosen, shares[chosen], 0.0)
        counted = counted / jnp.sum(counted)
        arms = jax.tree.map(lambda part: part[chosen], self.arms)
        blocks = split((counted, arms), size)

        def read_block(number: Int[Array, ""]) -> T:
            shares, arms = jax.tree.map(lambda part: part[number], blocks)
            logs, independent = arms.expanded(jnp.zeros_like(shares))
            places = jnp.exp(logs).reshape(len(shares), -1) * shares[:, None]
            return read(places.ravel(), independent)

        def add(number: Int[Array, ""], sums: T) -> T:
            return jax.tree.map(jnp.add, sums, read_block(number))

        shapes = jax.eval_shape(read_block, jnp.array(0))
        nothing = jax.tree.map(lambda part: jnp.zeros(part.shape, part.dtype), shapes)
        sums = jax.lax.fori_loop(0, -(-num_chosen // size), add, nothing)
        return jax.tree.map(lambda part: part.astype(float), sums)

    def _shares(self, dtype: np.dtype) -> Float[Array, " component"]:
        return jnp.exp(self.log_weights).astype(dtype)

    def _average(self, values: Float[Array, "component *shape"]) -> Float[Array, "*shape"]:
        shares = self._shares(values.dtype).reshape((-1,) + (1,) * (values.ndim - 1))
        # Not a matrix product: as a sum it is done while the values are computed.
        return jnp.sum(shares * values, axis=0).astype(float)


def _weighty(shares: Float[Array, " component"]) -> tuple[Int[Array, " component"], Int[Array, ""]]:
    """List the components without which more than a negligible weight is missing, and count them.

    Sorting would find the fewest of them, and take longer than what it saves.
    """
    doublings = np.asarray(2.0 ** np.arange(_NUM_DOUBLINGS))
    limits = jnp.asarray(_NEGLIGIBLE / len(shares) * doublings, shares.dtype)
    lighter = jnp.sum(jnp.where(shares[:, None] < limits[None, :], shares[:, None], 0.0), axis=0)
    is_chosen = shares >= jnp.max(jnp.where(lighter <= _NEGLIGIBLE, limits, 0.0))
    chosen = jnp.nonzero(is_chosen, size=len(shares), fill_value=0)[0]
    return chosen, jnp.sum(is_chosen)


def _best_and_reward(
    shares: Shares, arms: IndependentArms, rewards: Rewards
) -> tuple[Contest, Float[Array, "best arm value"]]:
    contest, own = arms.contest_and_reward(rewards)
    joint, wins = arms.joint(shares, rewards), contest.best_probability
    # Row j, column a: another arm is best while a is pulled.
    rest = joint * (1 - own) * (1 / jnp.maximum(1 - wins, LEAST_SHARE))[:, :, None]
    others = jnp.einsum("cj,car->jar", wins, rest)
    is_own = jnp.eye(wins.shape[1], dtype=bool)[:, :, None]
    table = jnp.where(is_own, jnp.sum(joint * own, axis=0)[None, :, :], others)
    return contest, table
