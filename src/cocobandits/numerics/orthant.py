"""Probabilities of orthants of Gaussian vectors: who is best, and how likely is a box.

Owns numerical integration of normal densities; knows nothing of users or rewards. Singular
covariances are welcome: a population may tie arms to each other exactly.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr, ndtri
from jaxtyping import Array, Float

from cocobandits.types import ArmVector, Scalar

# Below any variance that rewards could tell from zero; keeps ratios finite.
_LEAST_VARIANCE = 1e-30
_NUM_ANGLES = 64
_NUM_LATTICE_POINTS = 4096


def best_probability(mean: ArmVector, covariance: Float[Array, "arm arm"]) -> ArmVector:
    """Compute P(arm a has the largest value) for every arm of one Gaussian vector."""
    arms, eye = range(len(mean)), np.eye(len(mean))

    def win(leads: Float[Array, "rival arm"]) -> Scalar:
        return orthant_probability(leads @ mean, leads @ covariance @ leads.T)

    # Row b of an arm: by how much it beats its b-th rival. All arms at once: one after another, ten
    # of them take most of a minute to compile.
    total = jax.vmap(win)(jnp.stack([np.delete(eye[arm] - eye, arm, axis=0) for arm in arms]))
    return total / jnp.sum(total)


def orthant_probability(
    mean: Float[Array, " part"], covariance: Float[Array, "part part"]
) -> Scalar:
    """Compute P(every part is positive): exactly up to two parts, by a lattice beyond.

    Two parts are exact to rounding, and to 1e-6 where perfectly correlated parts almost tie; the
    lattice is good to about three digits.
    """
    deviations = jnp.sqrt(jnp.maximum(jnp.diagonal(covariance), _LEAST_VARIANCE))
    bounds = mean / deviations
    if len(mean) == 1:
        return ndtr(bounds[0])
    correlation = jnp.clip(covariance / jnp.outer(deviations, deviations), -1.0, 1.0)
    if len(mean) == 2:
        return bivariate_cumulative(bounds[0], bounds[1], correlation[0, 1])
    return _lattice_probability(bounds, correlation)


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


def _lattice_probability(
    bounds: Float[Array, " part"], correlation: Float[Array, "part part"]
) -> Scalar:
    """Integrate part by part, each given the ones before (Genz's transformation)."""
    num_parts = len(bounds)
    points = _lattice(num_parts)
    factor = jnp.linalg.cholesky(correlation + 1e-12 * jnp.eye(num_parts))
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
