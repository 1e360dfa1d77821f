"""One-dimensional stationary kernels (paper, App. "Gaussian Processes as Distributions").

The kernel over all axes is their product, so that its eigenpairs are products of one-dimensional
ones. For the squared exponential this is the paper's kernel; for Matérn it is the product form,
not the isotropic one.
"""

from collections.abc import Callable
from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

from cocobandits.models.log_density.grid import Distances

KernelName = Literal["squared-exponential", "matern-3/2", "matern-5/2"]
Scaled = Float[Array, "left right"]


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


def correlation(name: KernelName, squared_distance: Distances, lengthscale: float) -> Distances:
    """Compute the correlation k(d) with k(0) = 1 at the given squared distances."""
    return KERNELS[name](jnp.sqrt(squared_distance) / lengthscale)
