"""A user's rewards as sufficient statistics, one sum per arm."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import ArrayLike, Float, Int

from cocobandits.types import ArmVector, Number, Scalar


class Statistics(NamedTuple):
    """A user's rewards, summed per arm; enough for every likelihood with known Gaussian noise.

    A late, re-ordered, corrected or withdrawn reward is a change of these three vectors, so the
    cost of a user never depends on how long the history is.
    """

    count: ArmVector  # type: ignore[assignment]  # tuple.count is of no use here
    total: ArmVector
    total_square: ArmVector

    @classmethod
    def empty(cls, num_arms: int) -> "Statistics":
        """Make the statistics of a user without rewards."""
        zeros = jnp.zeros(num_arms)
        return cls(zeros, zeros, zeros)

    def add(self, arm: int, reward: float) -> "Statistics":
        """Add one reward of one arm."""
        return self._shift(arm, 1.0, reward)

    def remove(self, arm: int, reward: float) -> "Statistics":
        """Take one reward of one arm away again."""
        removed = self._shift(arm, -1.0, reward)
        # Without this, rounding would leave a trace of a reward that is gone.
        is_left = removed.count > 0
        return Statistics(*(jnp.where(is_left, field, 0.0) for field in removed))

    def plus(self, further: "Statistics") -> "Statistics":
        """Add up the rewards of two histories."""
        return Statistics(*(mine + other for mine, other in zip(self, further, strict=True)))

    def extend(self, reward: Scalar) -> "Statistics":
        """Add the same reward to every arm, for predictions of each arm's next reward."""
        return Statistics(self.count + 1, self.total + reward, self.total_square + reward**2)

    # Compiled, since a decision and its reward are otherwise dozens of small dispatches.
    @jax.jit
    def _shift(
        self, arm: Int[ArrayLike, ""], sign: Float[ArrayLike, ""], reward: Float[ArrayLike, ""]
    ) -> "Statistics":
        return Statistics(
            self.count.at[arm].add(sign),
            self.total.at[arm].add(sign * reward),
            self.total_square.at[arm].add(sign * reward**2),
        )


def sample_mean(statistics: Statistics) -> ArmVector:
    """Compute the average reward per arm, zero for arms without rewards."""
    return statistics.total / jnp.maximum(statistics.count, 1.0)


def mean_deviation(statistics: Statistics, reward_noise: Number) -> ArmVector:
    """Compute the standard deviation σ/√n of the average reward (σ where there is none)."""
    return jnp.asarray(reward_noise) / jnp.sqrt(jnp.maximum(statistics.count, 1.0))
