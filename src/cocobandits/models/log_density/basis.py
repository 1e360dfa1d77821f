"""Karhunen-Loève basis from one-dimensional eigenpairs (paper, App. "KL expansion").

The product kernel on a tensor grid is a Kronecker product, so its eigenpairs are products of the
eigenpairs of one small matrix per axis; no matrix over all nodes is ever formed. Owns the choice of
the leading modes and their extension to contexts between nodes.
"""

import heapq
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from cocobandits.models.log_density.grid import ContextAxis
from cocobandits.models.log_density.kernel import KernelName, correlation
from cocobandits.types import Scalar

# Below this fraction of the largest eigenvalue an eigenvector is rounding error, and dividing by
# the eigenvalue (as the extension between nodes does) would magnify it.
_SMALLEST_EIGENVALUE = 1e-10


class AxisBasis(NamedTuple):
    """Eigenpairs of the correlation matrix of one axis, largest eigenvalue first."""

    axis: ContextAxis
    kernel: KernelName
    lengthscale: float
    eigenvalues: Float[Array, " axis_mode"]
    eigenvectors: Float[Array, "node axis_mode"]

    def at(self, value: Scalar) -> Float[Array, " axis_mode"]:
        """Extend the eigenvectors to any point: φ_q(x) = Σ_n k(x, x_n) v_nq / λ_q (Nyström)."""
        distance = self.axis.squared_distance(value[None], self.axis.nodes)
        covariance = correlation(self.kernel, distance, self.lengthscale)[0]
        return covariance @ (self.eigenvectors / self.eigenvalues[None, :])

    def keep(self, num_modes: int) -> "AxisBasis":
        """Drop all but the leading modes."""
        return self._replace(
            eigenvalues=self.eigenvalues[:num_modes], eigenvectors=self.eigenvectors[:, :num_modes]
        )


def decompose(axis: ContextAxis, kernel: KernelName, lengthscale: float) -> AxisBasis:
    """Compute the eigenpairs of the correlation matrix over the nodes of one axis."""
    distance = axis.squared_distance(axis.nodes, axis.nodes)
    gram = np.asarray(correlation(kernel, distance, lengthscale))
    values, vectors = np.linalg.eigh(gram)
    values, vectors = values[::-1], vectors[:, ::-1]
    # The sign of an eigenvector is arbitrary; fix it so that machines agree. An antisymmetric one
    # has two largest entries, and only rounding makes one of them the first.
    first_largest = np.abs(vectors).round(6).argmax(axis=0)
    largest = np.take_along_axis(vectors, first_largest[None, :], axis=0)
    vectors = vectors * np.where(largest < 0, -1.0, 1.0)
    is_sound = values > _SMALLEST_EIGENVALUE * values[0]
    return AxisBasis(
        axis, kernel, lengthscale, jnp.asarray(values[is_sound]), jnp.asarray(vectors[:, is_sound])
    )


class ModeTable(NamedTuple):
    """The leading products of one-dimensional modes: which one on each axis, and the eigenvalue."""

    indices: np.ndarray[tuple[int, int], np.dtype[np.int64]]  # mode × axis
    eigenvalues: np.ndarray[tuple[int], np.dtype[np.float64]]  # mode


def leading_modes(eigenvalues: Sequence[Float[Array, "_"]], num_modes: int) -> ModeTable:
    """Find the largest products of one eigenvalue per axis by best-first search.

    A product can only be the next largest after all products with one index lowered by one, so a
    heap finds M of them without listing the whole grid of products.
    """
    ladders = [np.log(np.asarray(ladder)) for ladder in eigenvalues]

    def entry(index: tuple[int, ...]) -> tuple[float, tuple[int, ...]]:
        log_product = sum(float(ladder[i]) for ladder, i in zip(ladders, index, strict=True))
        # Equal products may differ in the last digit; rounding lets the index decide everywhere.
        return -round(log_product, 9), index

    start = (0,) * len(ladders)
    heap, seen = [entry(start)], {start}
    found: list[tuple[int, ...]] = []
    while heap and len(found) < num_modes:
        _, index = heapq.heappop(heap)
        found.append(index)
        for axis, ladder in enumerate(ladders):
            successor = (*index[:axis], index[axis] + 1, *index[axis + 1 :])
            if successor[axis] < len(ladder) and successor not in seen:
                seen.add(successor)
                heapq.heappush(heap, entry(successor))
    indices = np.array(found, dtype=np.int64)
    logs = sum(ladder[indices[:, axis]] for axis, ladder in enumerate(ladders))
    return ModeTable(indices, np.exp(logs))
