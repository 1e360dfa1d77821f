"""Tensors with one axis of cells per arm: products with, and sums down to, one vector per arm."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from cocobandits.types import ArmCells

Tensor = Float[Array, "*cells"]


def once(values: Tensor) -> Tensor:
    """Keep the compiler from computing a tensor anew for each of its readers."""
    return jax.lax.optimization_barrier(values)  # type: ignore[no-untyped-call]


def times(weights: Tensor, factors: ArmCells) -> Tensor:
    """Multiply the weight of every cell by one factor per arm."""
    for arm in range(weights.ndim):
        shape = [1] * weights.ndim
        shape[arm] = -1
        weights = weights * factors[arm].reshape(shape)
    return weights


def marginals(probabilities: Tensor) -> ArmCells:
    """Sum over all arms but one, for each arm; in double precision from there on."""
    rows = []
    for _ in range(probabilities.ndim):
        # The last arm's share, then on without that arm.
        rows.append(jnp.sum(probabilities.reshape(-1, probabilities.shape[-1]), axis=0))
        probabilities = probabilities @ jnp.ones(probabilities.shape[-1], probabilities.dtype)
    return jnp.stack(rows[::-1]).astype(float)


def pair_marginal(values: Tensor, first: int, second: int) -> Float[Array, "cell cell"]:
    """Sum over all arms but two, the first along the rows."""
    others = tuple(arm for arm in range(values.ndim) if arm not in (first, second))
    joint = jnp.sum(values, axis=others)
    return joint if first < second else joint.T
