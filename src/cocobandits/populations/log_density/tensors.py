"""Tensors with one axis of cells per arm: products with, and sums down to, one vector per arm."""

from collections.abc import Iterable
from functools import partial, reduce

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from cocobandits.types import ArmCells

Tensor = Float[Array, "*cells"]


def times(weights: Tensor, factors: ArmCells) -> Tensor:
    """Multiply the weight of every cell by one factor per arm."""
    for arm in range(weights.ndim):
        shape = [1] * weights.ndim
        shape[arm] = -1
        weights = weights * factors[arm].reshape(shape)
    return weights


def outer_sum(vectors: Iterable[Float[Array, " cell"]]) -> Tensor:
    """Add one number per arm in every combination of their cells."""
    return reduce(jnp.add.outer, vectors)


def marginals(masses: Tensor) -> ArmCells:
    """Sum over all arms but one, for each arm; in double precision from there on."""
    rows = []
    for _ in range(masses.ndim):
        # The first arm's share, then on without that arm: long runs, as the processor likes them.
        slices = masses.reshape(len(masses), -1)
        rows.append(slices @ jnp.ones(slices.shape[1], masses.dtype))
        masses = jnp.sum(slices, axis=0).reshape(masses.shape[1:])
    return jnp.stack(rows).astype(float)


def pair_marginal(values: Tensor, first: int, second: int) -> Float[Array, "cell cell"]:
    """Sum over all arms but two, the first along the rows."""
    others = tuple(arm for arm in range(values.ndim) if arm not in (first, second))
    joint = jnp.sum(values, axis=others)
    return joint if first < second else joint.T


def sink(values: Tensor, is_eligible: Bool[Array, " arm"]) -> Tensor:
    """Sum over the cells of every arm that is not eligible, into its lowest cell."""

    def to_lowest(arm: int, values: Tensor) -> Tensor:
        return jnp.zeros_like(values).at[(slice(None),) * arm + (0,)].set(values.sum(arm))

    for arm in range(values.ndim):
        sunk = partial(to_lowest, arm)
        values = jax.lax.cond(is_eligible[arm], lambda values: values, sunk, values)
    return values
