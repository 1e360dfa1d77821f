"""What a basis of the log-density must answer, and the choice of its leading modes.

A mode is a product of one function per axis of the grid. The part on the arm axes is tabulated once
(`arm_functions`); the part on the context axes, and how strong a mode is, may depend on the
particle, and end up in one coefficient per mode (`coefficients`).
"""

import heapq
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Array, Float

from cocobandits.populations.log_density.kernel import KernelScales
from cocobandits.types import Context, Parameters, RngKey

BasisName = Literal["karhunen-loeve", "hilbert"]
Coefficients = Float[Array, " mode"]
AxisFunctions = Float[Array, "cell axis_mode"]
Indices = np.ndarray[tuple[int, int], np.dtype[np.int64]]


class Basis(ABC):
    """Functions f(μ, x) = Σ_m c_m(ξ, x) ∏_a φ_{m,a}(μ_a)."""

    arm_functions: AxisFunctions
    arm_indices: Indices  # mode × arm: the column of `arm_functions` of each arm

    @property
    @abstractmethod
    def num_parameters(self) -> int:
        """Number of whitened parameters."""

    @abstractmethod
    def coefficients(self, parameters: Parameters, context: Context) -> Coefficients:
        """Compute the coefficient of every mode at a context."""

    @abstractmethod
    def kernel_scales(self, parameters: Parameters) -> KernelScales:
        """Read the lengthscales and the amplitude of a particle."""

    def interweave(self, rng_key: RngKey, parameters: Parameters) -> Parameters:
        """Move hyperparameters while all coefficients stay; by default there are none to move."""
        del rng_key
        return parameters


class ModeTable(NamedTuple):
    """The leading products of one-dimensional modes: which one on each axis, and the eigenvalue."""

    indices: Indices  # mode × axis
    log_eigenvalues: np.ndarray[tuple[int], np.dtype[np.float64]]  # mode

    @property
    def eigenvalues(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """The products themselves."""
        return np.exp(self.log_eigenvalues)


def leading_modes(log_eigenvalues: Sequence[Float[Array, "_"]], num_modes: int) -> ModeTable:
    """Find the largest products of one eigenvalue per axis by best-first search.

    A product can only be the next largest after all products with one index lowered by one, so a
    heap finds M of them without listing the whole grid of products.
    """
    ladders = [np.asarray(ladder) for ladder in log_eigenvalues]

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
    return ModeTable(indices, np.asarray(logs))
