"""Probabilities of orthants of Gaussian vectors: who is best, how good, and how likely is a box.

Owns numerical integration of normal densities; knows nothing of users or rewards. Singular
covariances are welcome: a population may tie arms to each other exactly.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr, ndtri
from jaxtyping import Array, Bool, Float

from cocobandits.types import ArmVector, Scalar

# Below any variance that rewards could tell from zero; keeps ratios finite.
_LEAST_VARIANCE = 1e-30
_NUM_ANGLES = 64
_NUM_LATTICE_POINTS = 4096
# Three arms are good to 1e-7 with these steps; 129 gave 3e-6.
_NUM_STEPS, _STEP_REACH = 513, 8.0
# A standard normal lies beyond with probability 2e-19.
_LINE_REACH = 9.0
_FAN = np.arange(12) * np.pi / 12
# Pivots this small, as a share, are what rounding leaves of zero.
_LEAST_PIVOT = 1e-14
# Arms closer than this, in mean and in deviation, as a share of their scale, are the same arm.
_TIED_MEAN, _TIED_DEVIATION = 1e-12, 1e-7


def best_probability(mean: ArmVector, covariance: Float[Array, "arm arm"]) -> ArmVector:
    """Compute P(arm a has the largest value) for every arm; arms that are the same share it."""
    arms, eye = range(len(mean)), np.eye(len(mean))
    root = semidefinite_root(covariance)
    is_tied = _are_tied(mean, root)

    def win(leads: Float[Array, "rival arm"]) -> Scalar:
        # Row b: by how much the arm beats its b-th rival; that it beats itself is certain.
        is_same = jnp.einsum("ba,bc,ac->b", leads > 0, leads < 0, is_tied) > 0
        lead = jnp.where(is_same, 1.0, leads @ mean)
        if len(leads) <= 2:
            spread = leads @ covariance @ leads.T
            is_free = ~is_same[:, None] & ~is_same[None, :]
            return orthant_probability(lead, jnp.where(is_free, spread, 0.0))
        return _lattice_probability(lead, jnp.where(is_same[:, None], 0.0, leads @ root))

    # All arms at once: one after another, ten of them take most of a minute to compile.
    total = jax.vmap(win)(jnp.stack([np.delete(eye[arm] - eye, arm, axis=0) for arm in arms]))
    shared = total / jnp.sum(is_tied, axis=1)
    return shared / jnp.sum(shared)


def expected_largest(mean: ArmVector, covariance: Float[Array, "arm arm"]) -> Scalar:
    """Compute the expectation of the largest value of one Gaussian vector.

    Given all other directions of N(0, I), the arms are lines in the last one, t ~ N(0, 1), and the
    largest of them is integrated exactly. The others are summed over: none for two arms, even steps
    for three (good to 1e-7), and a lattice for more (good to about three digits). Points come with
    their opposites, so that the result is never below the largest mean.
    """
    root = semidefinite_root(covariance)
    # What all arms have in common adds its mean.
    left, scales, _ = jnp.linalg.svd(root - jnp.mean(root, axis=0)[None, :])
    loadings = _turned((left * scales[None, :])[:, :-1])
    points, weights = _points(len(mean) - 2)
    intercepts = (mean - jnp.mean(mean))[None, :] + points @ loadings[:, 1:].T
    of_lines = jax.vmap(_expected_highest_line, in_axes=(0, None))
    return jnp.mean(mean) + weights @ of_lines(intercepts, loadings[:, 0])


def orthant_probability(
    mean: Float[Array, " part"], covariance: Float[Array, "part part"]
) -> Scalar:
    """Compute P(every part is positive): exactly up to two parts, by a lattice beyond.

    Two parts are exact to rounding, and to 1e-6 where perfectly correlated parts almost tie; the
    lattice is good to about three digits.
    """
    if len(mean) > 2:
        return _lattice_probability(mean, semidefinite_root(covariance))
    deviations = jnp.sqrt(jnp.maximum(jnp.diagonal(covariance), _LEAST_VARIANCE))
    bounds = mean / deviations
    if len(mean) == 1:
        return ndtr(bounds[0])
    correlation = jnp.clip(covariance / jnp.outer(deviations, deviations), -1.0, 1.0)
    return bivariate_cumulative(bounds[0], bounds[1], correlation[0, 1])


def bivariate_cumulative(
    first: Float[Array, "*shape"], second: Float[Array, "*shape"], correlation: Scalar
) -> Float[Array, "*shape"]:
    """Compute P(X ≤ first, Y ≤ second) for standard normals of a given correlation.

    Plackett's identity: the derivative by the correlation is the bivariate density, integrated here
    over its angle. The angle is squeezed towards the end, where a correlation near ±1 has its edge.
    """
    nodes, weights = np.polynomial.legendre.leggauss(_NUM_ANGLES)
    unit, weights = (nodes + 1) / 2, weights / 2
    end = jnp.arcsin(correlation)
    rest = (np.pi / 2 - end * (1 - unit**2)).reshape((-1,) + (1,) * first.ndim)
    # (h-k)² + 4hk·sin²(rest/2) is h² + k² - 2hk·cos(rest) without the cancellation.
    product = (first * second)[None]
    square = ((first - second) ** 2)[None] + 4 * product * jnp.sin(rest / 2) ** 2
    density = jnp.exp(-square / (2 * jnp.maximum(jnp.sin(rest) ** 2, _LEAST_VARIANCE)))
    turned = end * jnp.tensordot(jnp.asarray(weights * unit / np.pi), density, axes=1)
    return jnp.clip(ndtr(first) * ndtr(second) + turned, 0.0, 1.0)


def semidefinite_root(covariance: Float[Array, "part part"]) -> Float[Array, "part source"]:
    """Compute a lower triangle L with L Lᵀ = C, whose columns of no variance are zero."""
    columns = jnp.zeros_like(covariance)
    for part in range(len(covariance)):
        left = covariance[:, part] - columns @ columns[part]
        is_free = left[part] > _LEAST_PIVOT * covariance[part, part]
        column = left / jnp.sqrt(jnp.where(is_free, left[part], 1.0))
        is_below = np.arange(len(covariance)) >= part
        columns = columns.at[:, part].set(jnp.where(is_free & is_below, column, 0.0))
    return columns


def _are_tied(mean: ArmVector, root: Float[Array, "arm source"]) -> Bool[Array, "arm arm"]:
    """Find arms that always have the same value."""
    deviation = jnp.linalg.norm(root, axis=1)
    apart = jnp.linalg.norm(root[:, None, :] - root[None, :, :], axis=2)
    scale = jnp.abs(mean) + deviation
    is_near = jnp.abs(mean[:, None] - mean[None, :]) <= _TIED_MEAN * jnp.add.outer(scale, scale)
    return is_near & (apart <= _TIED_DEVIATION * jnp.add.outer(deviation, deviation))


def _turned(loadings: Float[Array, "arm source"]) -> Float[Array, "arm source"]:
    """Turn the two largest sources such that no two arms have almost the same slope in the first.

    Where arms differ by the second source alone, integrands over it have kinks. Of 12 directions,
    one is at 22 degrees or more from all three that differences of three arms can forbid.
    """
    if loadings.shape[1] < 2:
        return loadings
    cosine, sine = np.cos(_FAN), np.sin(_FAN)
    first = loadings[:, :1] * cosine[None, :] + loadings[:, 1:2] * sine[None, :]
    second = loadings[:, 1:2] * cosine[None, :] - loadings[:, :1] * sine[None, :]
    slopes, offsets = (jnp.abs(part[:, None] - part[None, :]) for part in (first, second))
    length = jnp.maximum(jnp.hypot(slopes, offsets), np.finfo(float).tiny)
    steepness = jnp.where(length > _TIED_DEVIATION * jnp.max(length), slopes / length, 1.0)
    best = jnp.argmax(jnp.min(steepness, axis=(0, 1)))
    return jnp.concatenate([first[:, best, None], second[:, best, None], loadings[:, 2:]], axis=1)


def _expected_highest_line(intercepts: ArmVector, slopes: ArmVector) -> Scalar:
    """Compute E[max_a (intercept_a + slope_a t)] for t ~ N(0, 1).

    The maximum is linear between any two neighbours among the crossings of all pairs. Its values
    there decide, not which line is highest: of lines that tie, rounding would drop all or none.
    """
    first, second = np.triu_indices(len(slopes), 1)
    gap = slopes[first] - slopes[second]
    crossing = (intercepts[second] - intercepts[first]) / jnp.where(gap == 0, 1.0, gap)
    ends = jnp.array([-_LINE_REACH, _LINE_REACH])
    knots = jnp.sort(jnp.concatenate([jnp.clip(crossing, -_LINE_REACH, _LINE_REACH), ends]))
    highest = jnp.max(intercepts[None, :] + slopes[None, :] * knots[:, None], axis=1)
    width = jnp.diff(knots)
    slope = jnp.diff(highest) / jnp.where(width == 0, 1.0, width)
    share = jnp.diff(ndtr(knots))
    moment = -jnp.diff(jnp.exp(-(knots**2) / 2)) / np.sqrt(2 * np.pi)
    return jnp.sum((highest[:-1] - slope * knots[:-1]) * share + slope * moment)


def _points(num_sources: int) -> tuple[Float[Array, "point source"], Float[Array, " point"]]:
    """Lay out points and weights that stand for N(0, I), each with its opposite."""
    if num_sources == 0:
        return jnp.zeros((1, 0)), jnp.ones(1)
    if num_sources == 1:
        steps = jnp.linspace(-_STEP_REACH, _STEP_REACH, _NUM_STEPS)
        return steps[:, None], jax.nn.softmax(-(steps**2) / 2)
    half = ndtri(jnp.asarray(_lattice(num_sources)))
    return jnp.concatenate([half, -half]), jnp.full(2 * len(half), 0.5 / len(half))


def _lattice_probability(mean: Float[Array, " part"], root: Float[Array, "part _"]) -> Scalar:
    """Integrate part by part, each given the ones before (Genz's transformation)."""
    num_parts = len(mean)
    points = _lattice(num_parts)
    deviations = jnp.maximum(jnp.linalg.norm(root, axis=1), jnp.sqrt(_LEAST_VARIANCE))
    bounds = mean / deviations
    # By QR, since rounding may leave the correlation of dependent parts without a Cholesky factor.
    padded = jnp.concatenate([root / deviations[:, None], 1e-6 * jnp.eye(num_parts)], axis=1)
    upper = jnp.linalg.qr(padded.T, mode="r")
    factor = upper.T * jnp.where(jnp.diagonal(upper) < 0, -1.0, 1.0)[None, :]
    product = jnp.ones(_NUM_LATTICE_POINTS)
    drawn = jnp.zeros((_NUM_LATTICE_POINTS, num_parts))
    for part in range(num_parts):
        bound = (bounds[part] - drawn @ factor[part]) / factor[part, part]
        share = ndtr(bound)
        product = product * share
        low = ndtri(jnp.maximum(points[:, part] * share, 1e-300))
        drawn = drawn.at[:, part].set(low)
    return jnp.mean(product)


def _lattice(num_parts: int) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    """Lay out points that fill the unit cube evenly, whatever its dimension."""
    # The root of g^(d+1) = g + 1 generalises the golden ratio; its powers are hard to approximate
    # by fractions, so that multiples of them never line up.
    ratio = 2.0
    for _ in range(64):
        ratio = (1 + ratio) ** (1 / (num_parts + 1))
    steps = ratio ** -np.arange(1.0, num_parts + 1)
    points = np.mod(np.arange(1, _NUM_LATTICE_POINTS + 1)[:, None] * steps, 1.0)
    # Folding makes the integrand periodic, which such points integrate better.
    return np.clip(np.abs(2 * points - 1), 1e-12, 1 - 1e-12)
