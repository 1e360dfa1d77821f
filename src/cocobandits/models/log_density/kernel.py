"""One-dimensional stationary kernels (paper, App. "Gaussian Processes as Distributions").

The kernel over all axes is their product, so that its eigenpairs are products of one-dimensional
ones. For the squared exponential this is the paper's kernel; for Matérn it is the product form,
not the isotropic one.
"""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from cocobandits.models.log_density.grid import Distances
from cocobandits.types import Context, Number

KernelName = Literal["squared-exponential", "matern-3/2", "matern-5/2"]
Scaled = Float[Array, "left right"]
Frequencies = Float[Array, " frequency"]


class KernelScales(NamedTuple):
    """Lengthscales, in units of each axis, and the prior deviation of the log-density."""

    arm_lengthscale: Number
    context_lengthscales: Context
    amplitude: Number


def _squared_exponential(scaled: Scaled) -> Scaled:
    return jnp.exp(-0.5 * scaled**2)


def _matern_32(scaled: Scaled) -> Scaled:
    root = jnp.sqrt(3.0) * scaled
    return (1.0 + root) * jnp.exp(-root)


def _matern_52(scaled: Scaled) -> Scaled:
    root = jnp.sqrt(5.0) * scaled
    return (1.0 + root + root**2 / 3.0) * jnp.exp(-root)


KERNELS: dict[KernelName, Callable[[Scaled], Scaled]] = {
    "squared-exponential": _squared_exponential,
    "matern-3/2": _matern_32,
    "matern-5/2": _matern_52,
}


def correlation(name: KernelName, squared_distance: Distances, lengthscale: Number) -> Distances:
    """Compute the correlation k(d) with k(0) = 1 at the given squared distances."""
    return KERNELS[name](jnp.sqrt(squared_distance) / lengthscale)


def log_spectral_density(
    name: KernelName, frequencies: Frequencies, lengthscale: Number
) -> Frequencies:
    """Compute log S(ω) with k(d) = ∫ S(ω) cos(ωd) dω / 2π."""
    if name == "squared-exponential":
        constant = math.log(2 * math.pi) / 2
        return constant + jnp.log(lengthscale) - (frequencies * lengthscale) ** 2 / 2
    # Matérn ν = 3/2 and 5/2 in one dimension: c / ℓ^2ν / (2ν/ℓ² + ω²)^(ν + 1/2).
    twice = 3 if name == "matern-3/2" else 5
    constant = math.log(
        2 * math.sqrt(math.pi) * math.gamma((twice + 1) / 2) / math.gamma(twice / 2)
    ) + twice / 2 * math.log(twice)
    inner = jnp.log(twice / jnp.asarray(lengthscale) ** 2 + frequencies**2)
    return constant - twice * jnp.log(lengthscale) - (twice + 1) / 2 * inner
