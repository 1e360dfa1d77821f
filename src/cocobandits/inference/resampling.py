"""Systematic resampling (paper, App. "SMC": resampling)."""

import jax
import jax.numpy as jnp

from cocobandits.inference.weights import normalise
from cocobandits.types import Ancestors, LogWeights, RngKey


@jax.jit
def systematic(rng_key: RngKey, log_weights: LogWeights) -> Ancestors:
    """Choose ancestors so that each particle's number of copies is N·w rounded up or down.

    One uniform draw u gives the N equally spaced points (u + i)/N on the cumulated weights.
    """
    num_particles = len(log_weights)
    points = (jnp.arange(num_particles) + jax.random.uniform(rng_key)) / num_particles
    cumulated = jnp.cumsum(jnp.exp(normalise(log_weights)))
    # Rounding may leave the last sum below one.
    return jnp.clip(jnp.searchsorted(cumulated, points), 0, num_particles - 1)
