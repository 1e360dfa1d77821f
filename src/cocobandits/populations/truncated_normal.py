"""A flat prior on an interval, tilted by rewards: the truncated normal of one arm's mean.

Given n rewards with average r̄ and noise σ, an arm mean that is uniform on an interval becomes
N(r̄, σ²/n) truncated to it. Owns its density, distribution function and a quadrature that is exact
for products of several of them, however narrow.
"""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Float, Int

from cocobandits.numerics.normal_intervals import log_normal_intervals
from cocobandits.numerics.quadrature import Quadrature
from cocobandits.types import ArmVector, Number, Values
from cocobandits.users.statistics import Statistics, mean_deviation, sample_mean

# Integrands are smooth between these multiples of each arm's deviation, so a few Gauss-Legendre
# points per piece are exact to about 1e-9 for any number of rewards.
_BREAKS = np.array([-8.0, -6.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0])
# An average beyond the range leaves a tail at the edge that falls off exponentially; it is smooth
# between these multiples of its length.
_TAIL_BREAKS = np.array([0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0])
_BISECTIONS = 50
_TINY = float(np.finfo(float).tiny)


def interval_log_likelihood(
    statistics: Statistics, reward_noise: Number, edges: Values
) -> Float[Array, "arm interval"]:
    """Compute log p(rewards of arm a | μ_a uniform on the interval) between successive edges.

    ∏_j N(r_j | μ, σ²) = constant · N(r̄ | μ, σ²/n), averaged over the interval.
    """
    count = statistics.count[:, None]
    deviation = mean_deviation(statistics, reward_noise)[:, None]
    bounds = (edges[None, :] - sample_mean(statistics)[:, None]) / deviation
    log_share = log_normal_intervals(bounds)
    fit = log_share + 0.5 * jnp.log(2 * jnp.pi * deviation**2) - jnp.log(jnp.diff(edges))[None, :]
    constant = spread_log_likelihood(statistics, reward_noise)[:, None]
    return jnp.where(count > 0, constant + fit, 0.0)


def spread_log_likelihood(statistics: Statistics, reward_noise: Number) -> ArmVector:
    """Compute the part of log ∏_j N(r_j | μ, σ²) that does not depend on μ."""
    within = statistics.total_square - statistics.count * sample_mean(statistics) ** 2
    # Rounding may leave the sum of squares around the mean slightly negative.
    scaled = jnp.maximum(within, 0.0) / (2 * reward_noise**2)
    return -0.5 * statistics.count * jnp.log(2 * jnp.pi * reward_noise**2) - scaled


def truncated(
    statistics: Statistics,
    reward_noise: Number,
    edges: Values,
    cells: Int[Array, " point"],
    points: Float[Array, " point"],
) -> tuple[Float[Array, "arm point"], Float[Array, "arm point"]]:
    """Compute each arm's density and distribution function at points, each within its cell.

    The normal distribution function is evaluated twice per cell and once per point.
    """
    mean = sample_mean(statistics)[:, None]
    deviation = mean_deviation(statistics, reward_noise)[:, None]
    low = (edges[None, :-1] - mean) / deviation
    high = (edges[None, 1:] - mean) / deviation
    here = (points[None, :] - mean) / deviation
    # A point on the lower bound has an empty interval below it.
    reached = jnp.maximum(here, low[:, cells])
    # As in `log_normal_intervals`, cells to the right are mirrored. By their middle: where rounding
    # decides, in one place so and in another otherwise, both sides give the same.
    is_right = low + high > 0
    log_low = log_ndtr(jnp.where(is_right, -high, low))
    log_high = log_ndtr(jnp.where(is_right, -low, high))
    log_here = log_ndtr(jnp.where(is_right[:, cells], -reached, reached))
    # The mass of the cell, and of what lies between the point and the heavier end of the cell,
    # both relative to exp(log_high).
    mass = jnp.maximum(-jnp.expm1(log_low - log_high), _TINY)
    beyond = -jnp.expm1(jnp.minimum(log_here - log_high[:, cells], 0.0))
    share = jnp.minimum(beyond / mass[:, cells], 1.0)
    log_peak = -0.5 * jnp.log(2 * jnp.pi * deviation**2) - log_high - jnp.log(mass)
    has_data = statistics.count[:, None] > 0
    width = jnp.diff(edges)[cells][None, :]
    return (
        jnp.where(has_data, jnp.exp(log_peak[:, cells] - 0.5 * here**2), 1.0 / width),
        jnp.where(
            has_data,
            jnp.where(is_right[:, cells], share, 1.0 - share),
            (points - edges[cells])[None, :] / width,
        ),
    )


def quadrature(statistics: Statistics, reward_noise: Number, edges: Values) -> Quadrature:
    """Place points so that no piece straddles an edge or the narrow peak of any arm."""
    deviation = jnp.where(statistics.count > 0, mean_deviation(statistics, reward_noise), 0.0)
    mean = sample_mean(statistics)
    peaks = mean[:, None] + deviation[:, None] * jnp.asarray(_BREAKS)[None, :]
    edge = jnp.clip(mean, edges[0], edges[-1])
    distance = mean - edge
    # The density falls by e over deviation² / distance; closer than a deviation, the breaks around
    # the peak are enough.
    length = -(deviation**2) / jnp.where(distance == 0, 1.0, distance)
    tails = edge[:, None] + length[:, None] * jnp.asarray(_TAIL_BREAKS)[None, :]
    own = jnp.where((jnp.abs(distance) > deviation)[:, None], tails, peaks)
    breaks = jnp.sort(jnp.clip(jnp.concatenate([edges, own.ravel()]), edges[0], edges[-1]))
    return Quadrature.between(breaks)
