"""A flat prior on an interval, tilted by rewards: the truncated normal of one arm's mean.

Given n rewards with average r̄ and noise σ, an arm mean that is uniform on an interval becomes
N(r̄, σ²/n) truncated to it. Owns its density, distribution function and a quadrature that is exact
for products of several of them, however narrow.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Float, Int

from cocobandits.models.base import Statistics
from cocobandits.types import ArmVector, Number, Values

Bounds = Float[Array, "*shape"]

# Integrands are smooth between these multiples of each arm's deviation, so a few Gauss-Legendre
# points per piece are exact to about 1e-9 for any number of rewards.
_BREAKS = np.array([-8.0, -6.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0])
# An average beyond the range leaves a tail at the edge that falls off exponentially; it is smooth
# between these multiples of its length.
_TAIL_BREAKS = np.array([0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0])
_BISECTIONS = 50
_TINY = float(np.finfo(float).tiny)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


def _upper_integrals() -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    """Row k: weights that integrate the polynomial through all nodes from node k to 1."""
    powers = np.vander(_NODES, increasing=True)
    degrees = np.arange(1, len(_NODES) + 1)
    antiderivatives = (1 - _NODES[:, None] ** degrees) / degrees
    return np.asarray(antiderivatives @ np.linalg.inv(powers))


_UPPER = _upper_integrals()


class Quadrature(NamedTuple):
    """Points and weights of a piecewise Gauss-Legendre rule; `centres` are the pieces' middles."""

    points: Values
    weights: Values
    centres: Values


def log_normal_interval(lower: Bounds, upper: Bounds) -> Bounds:
    """Compute log(Φ(upper) - Φ(lower)) without cancellation in either tail."""
    # The left tail is where differences of Φ are exact, so intervals to the right are mirrored.
    is_right = lower > 0
    low = jnp.where(is_right, -upper, lower)
    high = jnp.where(is_right, -lower, upper)
    return _log_difference(log_ndtr(high), log_ndtr(low))


def log_normal_intervals(bounds: Float[Array, "arm edge"]) -> Float[Array, "arm interval"]:
    """Compute log(Φ(next) - Φ(this)) between successive bounds, with Φ evaluated once for each."""
    log_tail = log_ndtr(-jnp.abs(bounds))
    low, high = bounds[:, :-1], bounds[:, 1:]
    left, right = log_tail[:, :-1], log_tail[:, 1:]
    is_right = low >= 0
    one_sided = _log_difference(jnp.where(is_right, left, right), jnp.where(is_right, right, left))
    around_zero = jnp.log1p(-jnp.exp(left) - jnp.exp(right))
    return jnp.where((low < 0) & (high > 0), around_zero, one_sided)


def _log_difference(log_high: Bounds, log_low: Bounds) -> Bounds:
    """Compute log(exp(log_high) - exp(log_low))."""
    return log_high + jnp.log(-jnp.expm1(jnp.minimum(log_low - log_high, -_TINY)))


def sample_mean(statistics: Statistics) -> ArmVector:
    """Compute the average reward per arm, zero for arms without rewards."""
    return statistics.total / jnp.maximum(statistics.count, 1.0)


def mean_deviation(statistics: Statistics, reward_noise: Number) -> ArmVector:
    """Compute the standard deviation σ/√n of the average reward (σ where there is none)."""
    return jnp.asarray(reward_noise) / jnp.sqrt(jnp.maximum(statistics.count, 1.0))


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
    # As in `log_normal_interval`, cells to the right are mirrored. By their middle: where rounding
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


def truncated_quantile(
    statistics: Statistics,
    reward_noise: Number,
    lower: Float[Array, "draw arm"],
    upper: Float[Array, "draw arm"],
    shares: Float[Array, "draw arm"],
) -> Float[Array, "draw arm"]:
    """Find where each arm's distribution function reaches a share, by bisection.

    Closed forms of the inverse lose all digits eight deviations out, where an average beyond the
    range puts the whole distribution.
    """
    mean = sample_mean(statistics)[None, :]
    deviation = mean_deviation(statistics, reward_noise)[None, :]
    low, high = (lower - mean) / deviation, (upper - mean) / deviation
    log_target = jnp.log(shares) + log_normal_interval(low, high)

    def halve(_: Int[Array, ""], bracket: tuple[Bounds, Bounds]) -> tuple[Bounds, Bounds]:
        left, right = bracket
        middle = (left + right) / 2
        is_below = log_normal_interval(low, middle) < log_target
        return jnp.where(is_below, middle, left), jnp.where(is_below, right, middle)

    left, right = jax.lax.fori_loop(0, _BISECTIONS, halve, (low, high))
    tilted = mean + deviation * (left + right) / 2
    flat = lower + shares * (upper - lower)
    return jnp.where(statistics.count[None, :] > 0, jnp.clip(tilted, lower, upper), flat)


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
    half, centres = jnp.diff(breaks) / 2, (breaks[1:] + breaks[:-1]) / 2
    points = centres[:, None] + half[:, None] * jnp.asarray(_NODES)[None, :]
    weights = half[:, None] * jnp.asarray(_WEIGHTS)[None, :]
    centres = jnp.broadcast_to(centres[:, None], points.shape)
    return Quadrature(points.ravel(), weights.ravel(), centres.ravel())


def integrate_above(rule: Quadrature, intervals: Int[Array, " value"], values: Values) -> Values:
    """Integrate a function from each point of a rule up to the end of the point's interval.

    Args:
        rule: the points.
        intervals: the number of the interval that each point lies in, in rising order.
        values: the function at the points.
    """
    pieces = values.reshape(-1, len(_NODES))
    half = rule.weights.reshape(pieces.shape)[:, 0] / _WEIGHTS[0]
    inside = half[:, None] * (pieces @ jnp.asarray(_UPPER).T)
    whole = half * (pieces @ jnp.asarray(_WEIGHTS))
    number = intervals.reshape(pieces.shape)[:, 0]
    order = jnp.arange(len(number))
    is_above = (number[None, :] == number[:, None]) & (order[None, :] > order[:, None])
    return (inside + (is_above @ whole)[:, None]).ravel()
