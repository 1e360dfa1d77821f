"""The squared-exponential kernel (paper, App. "Gaussian Processes as Distributions").

The kernel over all axes is the product of one-dimensional ones, and so are its eigenpairs.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from cocobandits.populations.log_density.grid import Distances
from cocobandits.types import Context, Number

Frequencies = Float[Array, " frequency"]


class KernelScales(NamedTuple):
    """Lengthscales, in units of each axis, and the prior deviation of the log-density."""

    arm_lengthscale: Number
    context_lengthscales: Context
    amplitude: Number


def correlation(squared_distance: Distances, lengthscale: Number) -> Distances:
    """Compute the correlation k(d) with k(0) = 1 at the given squared distances."""
    scaled = jnp.sqrt(squared_distance) / lengthscale
    return jnp.exp(-0.5 * scaled**2)


def log_spectral_density(frequencies: Frequencies, lengthscale: Number) -> Frequencies:
    """Compute log S(ω) with k(d) = ∫ S(ω) cos(ωd) dω / 2π."""
    constant = math.log(2 * math.pi) / 2
    return constant + jnp.log(lengthscale) - (frequencies * lengthscale) ** 2 / 2
