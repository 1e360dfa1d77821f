"""Piecewise Gauss-Legendre quadrature between given breaks, and partial integrals of its pieces."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from cocobandits.types import Values

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


def _upper_integrals() -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    """Row k: weights that integrate the polynomial through all nodes from node k to 1."""
    powers = np.vander(_NODES, increasing=True)
    degrees = np.arange(1, len(_NODES) + 1)
    antiderivatives = (1 - _NODES[:, None] ** degrees) / degrees
    return np.asarray(antiderivatives @ np.linalg.inv(powers))


_UPPER = _upper_integrals()


class Quadrature(NamedTuple):
    """Points and weights of a piecewise Gauss-Legendre rule; `centres` are the pieces' middles."""

    points: Values
    weights: Values
    centres: Values

    @classmethod
    def between(cls, breaks: Float[Array, " break"]) -> "Quadrature":
        """Place points in every piece between successive breaks."""
        half, centres = jnp.diff(breaks) / 2, (breaks[1:] + breaks[:-1]) / 2
        points = centres[:, None] + half[:, None] * jnp.asarray(_NODES)[None, :]
        weights = half[:, None] * jnp.asarray(_WEIGHTS)[None, :]
        centres = jnp.broadcast_to(centres[:, None], points.shape)
        return cls(points.ravel(), weights.ravel(), centres.ravel())


def integrate_above(rule: Quadrature, intervals: Int[Array, " value"], values: Values) -> Values:
    """Integrate a function from each point of a rule up to the end of the point's interval.

    Args:
        rule: the points.
        intervals: the number of the interval that each point lies in, in rising order.
        values: the function at the points.
    """
    pieces = values.reshape(-1, len(_NODES))
    half = rule.weights.reshape(pieces.shape)[:, 0] / _WEIGHTS[0]
    inside = half[:, None] * (pieces @ jnp.asarray(_UPPER).T)
    whole = half * (pieces @ jnp.asarray(_WEIGHTS))
    number = intervals.reshape(pieces.shape)[:, 0]
    order = jnp.arange(len(number))
    is_above = (number[None, :] == number[:, None]) & (order[None, :] > order[:, None])
    return (inside + (is_above @ whole)[:, None]).ravel()
