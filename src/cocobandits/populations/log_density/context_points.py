"""A few contexts that stand for all of them: what is smooth in the context is read in between.

Chebyshev points on each continuous feature, all categories of a categorical one, and all their
combinations. Between the points a polynomial is read, of which each point has a share.
"""

import math
from dataclasses import dataclass
from functools import cached_property, reduce

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from cocobandits.populations.log_density.grid import Axis, ContextAxis
from cocobandits.types import Context

Shares = Float[Array, " point"]


@dataclass(frozen=True)
class ContextPoints:
    """All combinations of `per_feature` points on every continuous axis, and of all categories."""

    axes: tuple[ContextAxis, ...]
    per_feature: int

    @property
    def count(self) -> int:
        """How many combinations there are."""
        return math.prod(map(len, self._values))

    @property
    def contexts(self) -> Float[Array, "point feature"]:
        """List the combinations."""
        corners = np.meshgrid(*self._values, indexing="ij")
        flat = [corner.ravel() for corner in corners]
        return jnp.asarray(np.stack(flat, axis=1)) if flat else jnp.zeros((1, 0))

    def shares(self, context: Context) -> Shares:
        """Weigh the points so that polynomials through them are read at a context; sums to one."""
        parts = [
            _lagrange(values, context[feature])
            if isinstance(axis, Axis)
            else (jnp.asarray(values) == context[feature]).astype(float)
            for feature, (axis, values) in enumerate(zip(self.axes, self._values, strict=True))
        ]
        return reduce(lambda left, right: jnp.outer(left, right).ravel(), parts, jnp.ones(1))

    @cached_property
    def _values(self) -> list[np.ndarray]:
        return [
            _chebyshev(axis.low, axis.high, self.per_feature)
            if isinstance(axis, Axis)
            else np.arange(axis.size, dtype=float)
            for axis in self.axes
        ]


def _chebyshev(low: float, high: float, count: int) -> np.ndarray:
    angles = math.pi * (2 * np.arange(count) + 1) / (2 * count)
    return (low + high) / 2 - (high - low) / 2 * np.cos(angles)


def _lagrange(points: np.ndarray, value: jax.Array) -> Shares:
    """Multiply, for each point, the relative distances from all others."""
    itself = np.eye(len(points), dtype=bool)
    gaps = np.where(itself, 1.0, points[:, None] - points[None, :])
    ratios = (value - jnp.asarray(points)[None, :]) / gaps
    return jnp.prod(jnp.where(itself, 1.0, ratios), axis=1)
