"""Log-weight arithmetic of the particle posterior (paper, App. "SMC": importance weighting).

Owns normalisation, effective sample size and entropy. Knows nothing about models or bandits.
"""

import math

import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from cocobandits.types import LogWeights, Scalar


def uniform(num_particles: int) -> LogWeights:
    """Make equal, normalised log-weights."""
    return jnp.full(num_particles, -math.log(num_particles), dtype=float)


def normalise(log_weights: LogWeights) -> LogWeights:
    """Shift log-weights so that the weights sum to one."""
    return log_weights - logsumexp(log_weights)


def effective_sample_size(log_weights: LogWeights) -> Scalar:
    """Compute (Σw)² / Σw², a number between 1 and the number of particles."""
    return jnp.exp(2 * logsumexp(log_weights) - logsumexp(2 * log_weights))


def entropy(log_weights: LogWeights) -> Scalar:
    """Compute the Shannon entropy, in nats, of the normalised weights."""
    shifted = log_weights - jnp.max(log_weights)
    weights = jnp.exp(shifted)
    total = jnp.sum(weights)
    # Particles of weight zero must not produce 0 * -inf.
    return jnp.log(total) - jnp.sum(weights * jnp.where(weights > 0, shifted, 0.0)) / total


def average(
    log_weights: LogWeights, values: Float[Array, "particle *shape"]
) -> Float[Array, "*shape"]:
    """Compute the weighted mean over particles."""
    shares = jnp.exp(normalise(log_weights)).astype(values.dtype)
    # Not a matrix product, which would ask for another order of all arrays it is computed from.
    return jnp.sum(shares.reshape((-1,) + (1,) * (values.ndim - 1)) * values, axis=0)
