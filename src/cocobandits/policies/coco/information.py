"""The trade-off of information-directed sampling: squared regret per nat of information.

The mixture of arms with the smallest ratio needs at most two arms (Russo & Van Roy, 2014), so the
optimum is found in closed form over pairs, without any descent.
"""

import itertools

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from cocobandits.types import ArmVector

# Keeps the ratio finite where no arm informs; regret alone decides there.
_LEAST_GAIN = 1e-12
# A density that means nothing, and keeps sums of densities from being zero.
LEAST_DENSITY = 1e-30


def as_shares(predictive: Float[Array, "row value"]) -> Float[Array, "row value"]:
    """Make densities on the grid of rewards a distribution, row by row.

    Where all rewards that are expected lie beyond the grid, any is expected.
    """
    predictive = predictive + LEAST_DENSITY
    return predictive / jnp.sum(predictive, axis=1, keepdims=True)


def best_mixture(regret: ArmVector, gain: ArmVector) -> ArmVector:
    """Find the probabilities π that minimise the information ratio (π·regret)² / (π·gain).

    On the pair (i, j) with share q of arm i the ratio is convex in q, and its stationary point is
    q = Δ_j / (Δ_i - Δ_j) - 2 g_j / (g_i - g_j), clipped to [0, 1].
    """
    num_arms = len(regret)
    first, second = np.array(list(itertools.combinations(range(num_arms), 2))).T
    share = _best_share(regret[first], regret[second], gain[first], gain[second])
    identity = jnp.eye(num_arms)
    candidates = share[:, None] * identity[first] + (1 - share)[:, None] * identity[second]
    ratios = (candidates @ regret) ** 2 / (candidates @ gain + _LEAST_GAIN)
    # A minimum over numbers of which one is not known is not known either.
    is_known = jnp.all(jnp.isfinite(regret) & jnp.isfinite(gain))
    return jnp.where(is_known, candidates[jnp.argmin(ratios)], jnp.nan)


def _best_share(
    regret_i: Float[Array, " pair"],
    regret_j: Float[Array, " pair"],
    gain_i: Float[Array, " pair"],
    gain_j: Float[Array, " pair"],
) -> Float[Array, " pair"]:
    """Minimise (regret_j + q·(regret_i - regret_j))² / (gain_j + q·(gain_i - gain_j)) over q."""
    gain_j = gain_j + _LEAST_GAIN
    slope, growth = regret_i - regret_j, gain_i + _LEAST_GAIN - gain_j
    stationary = regret_j / slope - 2 * gain_j / growth

    def ratio(share: Float[Array, " pair"]) -> Float[Array, " pair"]:
        return (regret_j + share * slope) ** 2 / (gain_j + share * growth)

    # Equal regrets or equal gains leave no stationary point inside: an end is best.
    inner = jnp.clip(jnp.where(jnp.isfinite(stationary), stationary, 0.0), 0.0, 1.0)
    options = jnp.stack([jnp.zeros_like(inner), inner, jnp.ones_like(inner)])
    choice = jnp.argmin(jnp.stack([ratio(option) for option in options]), axis=0)
    return jnp.take_along_axis(options, choice[None, :], axis=0)[0]
