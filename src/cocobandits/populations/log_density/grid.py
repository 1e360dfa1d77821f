"""The axes of the tensor grid (paper, App. "Hyperparameters": nodes per arm mean and context).

Owns where nodes and cell edges lie. Does not know kernels or densities.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from cocobandits.errors import ConfigurationError

Points = Float[Array, " point"]
Left = Float[Array, " left"]
Right = Float[Array, " right"]
Distances = Float[Array, "left right"]


@dataclass(frozen=True)
class Axis:
    """Evenly spaced nodes from `low` to `high`, each the centre of a cell of equal width.

    The outermost cells therefore reach half a spacing beyond the range: the softmax of the paper
    gives every node the same share, and equal shares mean cells of equal width.
    """

    low: float
    high: float
    size: int

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ConfigurationError(
                f"Expected a finite range with low < high; got low={self.low}, high={self.high}. "
                "Give the smallest value first."
            )
        if self.size < 2:
            raise ConfigurationError(
                f"Expected at least 2 nodes on an axis; got size={self.size}. Raise it."
            )

    @property
    def spacing(self) -> float:
        """Distance of neighbouring nodes, which is also the width of a cell."""
        return (self.high - self.low) / (self.size - 1)

    @property
    def nodes(self) -> Points:
        """Cell centres."""
        return jnp.linspace(self.low, self.high, self.size)

    @property
    def edges(self) -> Points:
        """Cell boundaries, one more than there are nodes."""
        return self.low + self.spacing * (jnp.arange(self.size + 1) - 0.5)

    def squared_distance(self, left: Left, right: Right) -> Distances:
        """Compute all squared distances between two sets of points on this axis."""
        return (left[:, None] - right[None, :]) ** 2


@dataclass(frozen=True)
class CategoricalAxis:
    """Categories without order: any two are one unit apart (the corners of a regular simplex)."""

    size: int

    def __post_init__(self) -> None:
        if self.size < 2:
            raise ConfigurationError(
                f"Expected at least 2 categories; got size={self.size}. "
                "Leave a feature out that is the same for everyone."
            )

    @property
    def nodes(self) -> Points:
        """Category numbers, counted from zero."""
        return jnp.arange(self.size, dtype=float)

    def squared_distance(self, left: Left, right: Right) -> Distances:
        """Compute 0 for the same category and 1 for any other."""
        return (left[:, None] != right[None, :]).astype(float)


ContextAxis = Axis | CategoricalAxis


class GridAxes(NamedTuple):
    """The axes of a grid: the same for each arm, then one per feature."""

    num_arms: int
    arm: Axis
    contexts: tuple[ContextAxis, ...]
