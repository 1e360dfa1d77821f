"""Between coefficients of modes and tensors over the arm grid, a few contractions at a time.

A mode is a product of one function per arm, so a sum over modes at all cells is a chain of small
contractions. Two arms go together: one product with a wide matrix is what processors do best. Where
many densities are wanted at once they are columns, the last axis: then whatever happens cell by
cell happens for a run of neighbours in memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from cocobandits.numerics.precision import DTYPES, Precision
from cocobandits.numerics.traced import traced
from cocobandits.populations.log_density.basis import AxisFunctions, Basis, Coefficients
from cocobandits.populations.log_density.tensors import Tensor

CoreColumns = Float[Array, "core column"]
CellColumns = Float[Array, "_ column"]


@traced("functions", "pair_functions", "incidence", choices=("num_arms",))
@dataclass(frozen=True, eq=False)
class Expansion:
    """Sums of modes at every cell, and sums over cells against every mode."""

    num_arms: int
    functions: AxisFunctions  # of one arm
    pair_functions: Float[Array, "pair_cell pair_mode"]  # of two arms
    incidence: Float[Array, "core mode"]  # modes with the same arm part meet in one entry

    @classmethod
    def of(cls, basis: Basis, num_arms: int, precision: Precision) -> "Expansion":
        """Tabulate the functions of a basis."""
        functions = basis.arm_functions.astype(DTYPES[precision])
        core_shape = (functions.shape[1],) * num_arms
        entries = np.asarray(np.ravel_multi_index(tuple(basis.arm_indices.T), core_shape))
        incidence = np.zeros((int(np.prod(core_shape)), len(entries)))
        incidence[entries, np.arange(len(entries))] = 1.0
        pairs = jnp.einsum("im,jn->ijmn", functions, functions)
        pairs = pairs.reshape(len(functions) ** 2, -1)
        return cls(num_arms, functions, pairs, jnp.asarray(incidence, functions.dtype))

    def expand(self, coefficients: Coefficients) -> Tensor:
        """Sum the modes at every cell, for one particle; many go together under `jax.vmap`."""
        size, num_functions = self.functions.shape
        given = coefficients.astype(self.functions.dtype)
        tensor = (self.incidence @ given).reshape((num_functions,) * self.num_arms)
        for arm in range(self.num_arms - 2):
            tensor = jnp.moveaxis(jnp.tensordot(self.functions, tensor, axes=(1, arm)), 0, arm)
        rows = tensor.reshape(-1, num_functions**2) @ self.pair_functions.T
        return rows.reshape((size,) * self.num_arms)

    def sums(self, weights: Tensor) -> Coefficients:
        """Sum the weights of all cells times each mode, for one particle."""
        size, num_functions = self.functions.shape
        rows = weights.reshape(-1, size**2) @ self.pair_functions
        tensor = rows.reshape((size,) * (self.num_arms - 2) + (num_functions,) * 2)
        for arm in range(self.num_arms - 2):
            tensor = jnp.moveaxis(jnp.tensordot(self.functions, tensor, axes=(0, arm)), 0, arm)
        return (self.incidence.T @ tensor.ravel()).astype(float)

    def cores(self, coefficients: Float[Array, "mode *column"]) -> Float[Array, "core *column"]:
        """Add up modes that have the same arm part, for many columns of coefficients."""
        return jnp.tensordot(self.incidence, coefficients.astype(self.incidence.dtype), axes=1)


def expand_columns(cores: CoreColumns, functions: Sequence[AxisFunctions]) -> CellColumns:
    """Sum the modes at every combination of the cells of each arm, for many columns."""
    num_functions, num_columns = functions[0].shape[1], cores.shape[1]
    tensor = cores.reshape((num_functions,) * len(functions) + (num_columns,))
    for arm in reversed(range(len(functions))):
        tensor = _contract(functions[arm], tensor, arm)
    return tensor.reshape(-1, num_columns)


def sum_columns(weights: CellColumns, functions: Sequence[AxisFunctions]) -> CoreColumns:
    """Sum the weights of all cells times each product of functions, for many columns."""
    num_columns = weights.shape[1]
    tensor = weights.reshape(*(len(each) for each in functions), num_columns)
    for arm in range(len(functions)):
        tensor = _contract(functions[arm].T, tensor, arm)
    return tensor.reshape(-1, num_columns)


def _contract(
    matrix: Float[Array, "_ _"], tensor: Float[Array, "..."], axis: int
) -> Float[Array, "..."]:
    return jnp.moveaxis(jnp.tensordot(matrix, tensor, axes=(1, axis)), 0, axis)
