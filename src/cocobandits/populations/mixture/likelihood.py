"""The likelihood of all users' Gaussian rewards under all particles, with its gradient.

With V = diag(s²) + F Fᵀ, n rewards of an arm whose average lies e from the component's mean, and

    w = n / (σ² + n s²),   P = 1 + Σ_a w F²,   z = Σ_a w e F / P,   q = (e - F z)² + F² / P

a component's fit is -½ Σ_a [log(1 + n s²/σ²) + w e²] + ½ (P z² - log P), and its slopes are

    ∂/∂m = w (e - F z)                 ∂/∂s² = ½ w (w q - 1)
    ∂/∂F = w (z (e - F z) - F / P)     ∂/∂σ² = ½ Σ_a w (s²/σ² + q / (σ² + n s²)) - ...

where the dots are what all components share. A user's slope is that of each component by its
probability; where the context is not known, of each component at each point.

Owns this closed form; `model.py` differentiates what else there is by itself.
"""

import math
from functools import reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from cocobandits.populations.mixture.population import Population
from cocobandits.types import PerParticle
from cocobandits.users.table import UserRows

# Users that are worked on at a time, each point of a context counted: their arrays, with all
# particles, stay in the processor's cache.
CHUNK_USERS = 8
# Particles that a vector unit works on together; the rest of an axis would go one by one.
_VECTOR = 8
# Axes up to this length are added slice by slice. XLA merges that with what comes before it, where
# a sum is a kernel of its own that reads and writes everything.
_SHORT = 8
# Up to this number of terms, adding their multiples is faster than a product of matrices.
_FEW_TERMS = 8
# The logarithm of the least share of a component, and the logit of a stick that takes all.
_LEAST, _ALL = -60.0, 1e4


class Coefficients(NamedTuple):
    """A population as the likelihood sees it.

    Particles come last in every array here: along them, work is the same.
    """

    sticks: Float[Array, "term component particle"]
    means: Float[Array, "term component arm particle"]
    loadings: Float[Array, "term component arm particle"] | None
    spread: Float[Array, "component arm particle"]  # variances
    variance: Float[Array, " particle"]  # of a reward

    @classmethod
    def of(cls, population: Population) -> "Coefficients":
        """Multiply the scales in, in a population that has an axis of particles."""
        line = population.line_scale[None] * population.line
        own = population.own_scale[None, None] * population.own
        loadings, sticks = population.loadings, jnp.swapaxes(population.sticks, 0, 1)
        # The last component takes what is left.
        last = jnp.zeros((len(sticks), 1, sticks.shape[2])).at[0].set(_ALL)
        return cls(
            jnp.concatenate([sticks, last], axis=1),
            jnp.transpose(line[:, None] + own, (2, 1, 0, 3)),
            jnp.transpose(loadings[:, :, 0], (2, 1, 0, 3)) if loadings.shape[2] else None,
            population.spreads**2,
            population.noise**2,
        )

    def light(self, dtype: Any) -> "Coefficients":
        """Hold them in another precision, and repeat the last particle up to a whole vector."""
        spare = -len(self.variance) % _VECTOR

        def padded(part: Array) -> Array:
            before = ((0, 0),) * (part.ndim - 1)
            return jnp.pad(part.astype(dtype), (*before, (0, spare)), mode="edge")

        return jax.tree.map(padded, self)


class Users(NamedTuple):
    """Users with the points where they may be: one point, if the context is known."""

    weights: Float[Array, " user"]
    terms: Float[Array, "user point term"]
    num_rewards: Float[Array, "user arm"]
    average: Float[Array, "user arm"]


class _Arms(NamedTuple):
    """What rewards say about each arm of each component."""

    weights: Float[Array, "user #point component arm particle"]  # w
    precision: Float[Array, "user #point component arm particle"]  # 1 / (σ² + n s²)
    gaps: Float[Array, "user point component arm particle"]  # e, and then e - F z
    squares: Float[Array, "user point component arm particle"]  # q
    pulls: Float[Array, "user point component arm particle"] | None  # slope of F, by w


def log_likelihood_and_slopes(
    coefficients: Coefficients,
    rows: UserRows,
    terms: Float[Array, "user *point term"],
    dtype: Any,
) -> tuple[PerParticle, Coefficients]:
    """Sum the weighted log-evidences of all users, and their slopes in the coefficients.

    Each user's are computed in `dtype`, and added in double.
    """
    counted = jnp.where(jnp.arange(len(rows.weights)) < rows.num_rows, rows.weights, 0.0)
    average = rows.statistics.total / jnp.maximum(rows.statistics.count, 1.0)
    light = coefficients.light(dtype)
    parts = (part.astype(dtype) for part in (terms, rows.statistics.count, average))
    users = Users(counted, *parts)
    nothing = jax.tree.map(lambda part: jnp.zeros(part.shape), light)
    sums = nothing.variance, nothing
    if terms.ndim == 2:
        users = users._replace(terms=users.terms[:, None, :])
        sums = _add_chunks(light, users, rows.num_rows, CHUNK_USERS, sums)
    else:
        sums = _add_both(light, users, sums)
    num_particles = len(coefficients.variance)
    value, slopes = jax.tree.map(lambda part: part[..., :num_particles], sums)
    shared, by_variance = _shared(coefficients.variance, counted, rows, average)
    return value + shared, slopes._replace(variance=slopes.variance + by_variance)


def _shared(
    variance: PerParticle,
    weights: Float[Array, " user"],
    rows: UserRows,
    average: Float[Array, "user arm"],
) -> tuple[PerParticle, PerParticle]:
    """Sum what is the same for all components, and its slope in the variance of a reward."""
    statistics = rows.statistics
    count = weights @ jnp.sum(statistics.count, axis=1)
    scatter = weights @ jnp.sum(statistics.total_square - statistics.total * average, axis=1)
    value = -(count * jnp.log(2 * math.pi * variance) + scatter / variance) / 2
    return value, (scatter / variance - count) / (2 * variance)


def _add_both(coefficients: Coefficients, users: Users, sums: Any) -> Any:
    """Add users whose context is known, at one point, and then those who may be at several."""
    num_points = users.terms.shape[1]
    is_known = jnp.all(users.terms == users.terms[:, :1], axis=(1, 2))
    for is_kind, points in ((is_known, 1), (~is_known, num_points)):
        is_meant = is_kind & (users.weights > 0)
        some = users._replace(
            weights=jnp.where(is_meant, users.weights, 0.0), terms=users.terms[:, :points]
        )
        # Those who are meant come first, in their order.
        order = jnp.argsort(~is_meant)
        some = jax.tree.map(lambda part, order=order: part[order], some)
        size = max(1, CHUNK_USERS // points)
        sums = _add_chunks(coefficients, some, jnp.sum(is_meant), size, sums)
    return sums


def _add_chunks(
    coefficients: Coefficients, users: Users, num_users: Int[Array, ""], size: int, sums: Any
) -> Any:
    """Add a chunk of users at a time."""
    spare = -len(users.weights) % size

    def cut(part: Array) -> Array:
        padded = jnp.pad(part, ((0, spare),) + ((0, 0),) * (part.ndim - 1))
        return padded.reshape(-1, size, *part.shape[1:])

    chunks = jax.tree.map(cut, users)

    def read(number: Int[Array, ""]) -> Users:
        return jax.tree.map(lambda part: part[number], chunks)

    def add(number: Int[Array, ""], state: Any) -> Any:
        (value, slopes), chunk = state
        more, further = _contribution(coefficients, chunk)
        added = jax.tree.map(lambda total, part: total + part.astype(float), slopes, further)
        # XLA would read the chunk again in every kernel, were it not there from the step before.
        return (value + chunk.weights @ more.astype(float), added), read(number + 1)

    start = sums, read(jnp.zeros((), dtype=int))
    return jax.lax.fori_loop(0, -(-num_users // size), add, start)[0]


def _contribution(c: Coefficients, users: Users) -> tuple[Float[Array, "user particle"], Any]:
    """Compute the log-evidence of each user of a chunk, and the weighted sum of their slopes."""
    arms, fit = _fits(c, users)
    log_weights, shares = _stick_breaking(_linear(users.terms, c.sticks))
    value, probabilities = _joined(log_weights + fit)
    weights = users.weights.astype(value.dtype)[:, None, None, None] * probabilities
    by_arm = weights[:, :, :, None, :] * arms.weights
    by_noise = c.spread[None, None] / c.variance[None, None, None, None, :]
    by_variance = by_arm * (by_noise + arms.precision * arms.squares)
    return value, Coefficients(
        _pulled_back(users.terms, _stick_slopes(weights, shares)),
        _pulled_back(users.terms, by_arm * arms.gaps),
        None if arms.pulls is None else _pulled_back(users.terms, by_arm * arms.pulls),
        _added_users(by_arm * (arms.weights * arms.squares - 1)) / 2,
        jnp.sum(_added_users(by_variance), axis=(0, 1)) / 2,
    )


def _fits(
    c: Coefficients, users: Users
) -> tuple[_Arms, Float[Array, "user point component particle"]]:
    """Compute the log-density of rewards under each component, but for what all share."""
    count, average = (part[:, None, None, :, None] for part in users[2:])
    variance = c.variance[None, None, None, None, :]
    precision = 1 / (variance + count * c.spread[None, None])
    weights, kept = count * precision, variance * precision
    gaps = average - _linear(users.terms, c.means)
    misfit = _added(weights * gaps**2, 3)
    if c.loadings is None:
        fit = (_log_product(kept, 1.0) - misfit) / 2
        return _Arms(weights, precision, gaps, gaps**2, None), fit
    loadings = _linear(users.terms, c.loadings)
    inner = 1 / (1 + _added(weights * loadings**2, 3))
    gain = _added(weights * loadings * gaps, 3)
    fit = (_log_product(kept, inner) - misfit + gain**2 * inner) / 2
    centre, narrowed = (gain * inner)[:, :, :, None, :], loadings * inner[:, :, :, None, :]
    gaps -= centre * loadings
    squares = gaps**2 + narrowed * loadings
    return _Arms(weights, precision, gaps, squares, centre * gaps - narrowed), fit


def _joined(
    joint: Float[Array, "user point component particle"],
) -> tuple[Float[Array, "user particle"], Float[Array, "user point component particle"]]:
    """Average over points and sum over components; also return the probability of each."""
    top = jnp.max(joint, axis=(1, 2), keepdims=True)
    # Without a floor, most of the time would go into numbers next to zero.
    shares = jnp.exp(jnp.maximum(joint - top, _LEAST))
    total = jnp.sum(shares, axis=(1, 2), keepdims=True)
    value = (top + jnp.log(total))[:, 0, 0] - math.log(joint.shape[1])
    return value, shares / total


def _stick_breaking(
    logits: Float[Array, "user point component particle"],
) -> tuple[Float[Array, "user point component particle"], Array]:
    """Break a share σ off what is left, stick by stick; in logarithms. Also return the shares."""
    odds = jnp.exp(-jnp.abs(logits))
    left = -jnp.maximum(logits, 0) - jnp.log(1 + odds)
    earlier = np.tri(logits.shape[2], k=-1).T
    log_weights = logits + left + _weighed(left, earlier)
    return log_weights, jnp.where(logits < 0, odds, 1) / (1 + odds)


def _stick_slopes(
    weights: Float[Array, "user point component particle"],
    shares: Float[Array, "user point component particle"],
) -> Float[Array, "user point component particle"]:
    """Compute p_c - σ_c Σ_{d ≥ c} p_d for the logit of each stick."""
    return weights - shares * _weighed(weights, np.tri(weights.shape[2]))


def _weighed(
    parts: Float[Array, "user point component particle"], factors: "np.ndarray"
) -> Float[Array, "user point component particle"]:
    """Add up the components, each by its row of factors.

    As a sum of multiples, since XLA works on cumulated sums one number at a time.
    """
    light = jnp.asarray(factors, dtype=parts.dtype)
    return _added(parts[:, :, :, None] * light[None, None, :, :, None], 2)


def _log_product(
    kept: Float[Array, "user #point component arm particle"], inner: Any
) -> Float[Array, "user #point component particle"]:
    """Add up the logarithms of all arms and of the factor, in pairs: fewer logarithms."""
    half = kept.shape[3] // 2
    rest = kept[:, :, :, -1] * inner if kept.shape[3] % 2 else inner
    pairs = kept[:, :, :, :half] * kept[:, :, :, half : 2 * half]
    return _added(jnp.log(pairs), 3) + jnp.log(rest)


def _linear(
    terms: Float[Array, "user point term"], coefficients: Float[Array, "term *shape"]
) -> Float[Array, "user point *shape"]:
    """Multiply each term by its coefficients, and add up."""
    num_terms, *shape = coefficients.shape
    if num_terms > _FEW_TERMS:
        product = terms.reshape(-1, num_terms) @ coefficients.reshape(num_terms, -1)
        return product.reshape(*terms.shape[:2], *shape)
    lifted = terms.reshape(*terms.shape, *(1 for _ in shape))
    return reduce(
        jnp.add, (lifted[:, :, t] * coefficients[t][None, None] for t in range(num_terms))
    )


def _pulled_back(
    terms: Float[Array, "user point term"], slopes: Float[Array, "user point *shape"]
) -> Float[Array, "term *shape"]:
    """Turn slopes in sums of terms into slopes in their coefficients."""
    num_terms, shape = terms.shape[2], slopes.shape[2:]
    if num_terms > _FEW_TERMS:
        num_users = terms.shape[0] * terms.shape[1]
        product = terms.reshape(num_users, num_terms).T @ slopes.reshape(num_users, -1)
        return product.reshape(num_terms, *shape)
    lifted = terms.reshape(*terms.shape, *(1 for _ in shape))
    return jnp.stack([_added_users(lifted[:, :, t] * slopes) for t in range(num_terms)])


def _added_users(parts: Float[Array, "user point *shape"]) -> Float[Array, "*shape"]:
    return _added(parts.reshape(parts.shape[0] * parts.shape[1], *parts.shape[2:]), 0)


def _added(parts: Array, axis: int) -> Array:
    if parts.shape[axis] > _SHORT or not parts.shape[axis]:
        return jnp.sum(parts, axis=axis)
    return reduce(jnp.add, _slices(parts, axis))


def _slices(parts: Array, axis: int) -> list[Array]:
    return [jax.lax.index_in_dim(parts, i, axis, False) for i in range(parts.shape[axis])]
