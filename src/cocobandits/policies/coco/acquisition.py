"""The contract of an acquisition, and the trade-off that information-directed ones solve.

An acquisition reads the beliefs of all particles about one user, and combines the readings to arm
probabilities. Information-directed sampling minimises squared regret per nat of information. The
best mixture of arms needs at most two of them (Russo & Van Roy, 2014), so it is found in closed
form over pairs.
"""

import itertools
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from cocobandits.numerics.blocks import once
from cocobandits.populations.base import Belief
from cocobandits.types import ArmVector, LogWeights, Scalar

# Keeps the ratio finite where no arm informs; regret alone decides there.
_LEAST_GAIN = 1e-12
# Ratios this close, as a share, differ by rounding alone.
ROUNDING = 1e-12
# A density that means nothing, and keeps sums of densities from being zero.
LEAST_DENSITY = 1e-30

Pairs = Float[Array, " pair"]


class Rationales(NamedTuple):
    """What speaks for each arm: the fields of `study.explanation.Rationale`, standardised."""

    regret: ArmVector
    about_person: ArmVector
    about_population: ArmVector
    for_reward: ArmVector
    for_person: ArmVector
    for_population: ArmVector


class UserReadings(NamedTuple):
    """What an acquisition has read about one user.

    Attributes:
        log_weights: of the particles.
        each: the reading of every particle's belief.
        together: the reading of the mixture of all of them.
        num_rewards: how many rewards the user has given so far.
    """

    log_weights: LogWeights
    each: Any
    together: Any
    num_rewards: Scalar


class Acquisition(ABC):
    """A rule for choosing arms: an immutable tree, its numbers are traced.

    Values that are linear in the belief are read once, from the mixture of all particles; values
    that depend on the particle are read from each.
    """

    def next_rewards(self, together: Belief) -> Any:
        """Lay out the rewards that all beliefs about a user are read at; None if there are none."""
        return None

    @abstractmethod
    def read(self, belief: Belief, rewards: Any) -> Any:
        """Compute what the rule needs of one particle's belief."""

    @abstractmethod
    def read_together(self, belief: Belief, rewards: Any) -> Any:
        """Compute what the rule needs of the mixture of all particles' beliefs."""

    @abstractmethod
    def combine(self, readings: UserReadings) -> ArmVector:
        """Compute arm probabilities."""

    def rationales(self, readings: UserReadings) -> Rationales | None:
        """Split the probabilities by purpose; None for a rule that cannot."""
        return None


def as_shares(predictive: Float[Array, "row value"]) -> Float[Array, "row value"]:
    """Make densities on the grid of rewards a distribution, row by row.

    Where all rewards that are expected lie beyond the grid, any is expected.
    """
    predictive = once(predictive) + LEAST_DENSITY
    total = jnp.sum(predictive, axis=1, keepdims=True, dtype=float)
    return predictive / total.astype(predictive.dtype)


def log_positive(values: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Compute logarithms, zero counting as the smallest number of the precision."""
    tiny = jnp.finfo(values.dtype).tiny  # type: ignore[no-untyped-call]
    return jnp.log(jnp.maximum(values, tiny))


def best_mixture(regret: ArmVector, gain: ArmVector) -> ArmVector:
    """Find the probabilities π that minimise the information ratio (π·regret)² / (π·gain).

    On the pair (i, j) with share q of arm i the ratio is convex in q, and its stationary point is
    q = Δ_j / (Δ_i - Δ_j) - 2 g_j / (g_i - g_j). The candidates are these points inside (0, 1), and
    single arms that no pair improves on. The ratio is convex in π, so the average of candidates
    that tie is optimal too, and exchangeable arms get the same.
    """
    num_arms = len(regret)
    first, second = np.array(list(itertools.combinations(range(num_arms), 2))).T
    share = _best_share(regret[first], regret[second], gain[first], gain[second])
    identity = jnp.eye(num_arms)
    pairs = share[:, None] * identity[first] + (1 - share)[:, None] * identity[second]
    is_mixed = (share > 0) & (share < 1)
    is_improved = is_mixed @ (np.eye(num_arms)[first] + np.eye(num_arms)[second]) > 0
    candidates = jnp.concatenate([pairs, identity])
    ratios = (candidates @ regret) ** 2 / (candidates @ gain + _LEAST_GAIN)
    ratios = jnp.where(jnp.concatenate([is_mixed, ~is_improved]), ratios, jnp.inf)
    is_best = (ratios <= jnp.min(ratios) * (1 + ROUNDING)).astype(float)
    # A minimum over numbers of which one is not known is not known either.
    is_known = jnp.all(jnp.isfinite(regret) & jnp.isfinite(gain))
    return jnp.where(is_known, is_best @ candidates / jnp.sum(is_best), jnp.nan)


def _best_share(regret_i: Pairs, regret_j: Pairs, gain_i: Pairs, gain_j: Pairs) -> Pairs:
    """Minimise (regret_j + q·(regret_i - regret_j))² / (gain_j + q·(gain_i - gain_j)) over q."""
    gain_i, gain_j = gain_i + _LEAST_GAIN, gain_j + _LEAST_GAIN
    slope, growth = regret_i - regret_j, gain_i - gain_j
    stationary = regret_j / slope - 2 * gain_j / growth

    def ratio(share: Pairs) -> Pairs:
        return (regret_j + share * slope) ** 2 / (gain_j + share * growth)

    # Equal regrets or equal gains leave no stationary point inside: an end is best. Where both are
    # equal but for rounding, the formula returns any point.
    is_steep = (jnp.abs(slope) > ROUNDING * jnp.abs(regret_j)) | (
        jnp.abs(growth) > ROUNDING * gain_j
    )
    inner = jnp.clip(jnp.where(is_steep & jnp.isfinite(stationary), stationary, 0.0), 0.0, 1.0)
    options = jnp.stack([jnp.zeros_like(inner), inner, jnp.ones_like(inner)])
    choice = jnp.argmin(jnp.stack([ratio(option) for option in options]), axis=0)
    return jnp.take_along_axis(options, choice[None, :], axis=0)[0]
