"""Between coefficients of modes and tensors over the arm grid, a few contractions at a time.

A mode is a product of one function per arm, so a sum over modes at all cells is a chain of small
contractions. Two arms go together: one product with a wide matrix is what processors do best. Where
many densities are wanted at once they are columns, the last axis: then whatever happens cell by
cell happens for a run of neighbours in memory.
"""

from dataclasses import dataclass
from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from cocobandits.models.log_density.basis import AxisFunctions, Basis, Coefficients
from cocobandits.models.log_density.tensors import Tensor

Precision = Literal["single", "double"]
ModeColumns = Float[Array, "mode column"]
CellColumns = Float[Array, "_ column"]

DTYPES = {"single": jnp.float32, "double": jnp.float64}


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
        return cls(
            num_arms,
            functions,
            pairs.reshape(len(functions) ** 2, -1),
            jnp.asarray(incidence, functions.dtype),
        )

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

    def expand_columns(self, coefficients: ModeColumns) -> CellColumns:
        """Sum the modes at every cell, for many columns of coefficients."""
        num_functions, num_columns = self.functions.shape[1], coefficients.shape[1]
        given = coefficients.astype(self.functions.dtype)
        tensor = (self.incidence @ given).reshape((num_functions,) * self.num_arms + (-1,))
        for arm in range(2, self.num_arms):
            tensor = jnp.moveaxis(jnp.tensordot(self.functions, tensor, axes=(1, arm)), 0, arm)
        rows = self.pair_functions @ tensor.reshape(num_functions**2, -1)
        return rows.reshape(-1, num_columns)

    def sum_columns(self, weights: CellColumns) -> ModeColumns:
        """Sum the weights of all cells times each mode, for many columns of weights."""
        (size, num_functions), num_columns = self.functions.shape, weights.shape[1]
        rows = self.pair_functions.T @ weights.reshape(size**2, -1)
        tensor = rows.reshape((num_functions,) * 2 + (size,) * (self.num_arms - 2) + (-1,))
        for arm in range(2, self.num_arms):
            tensor = jnp.moveaxis(jnp.tensordot(self.functions, tensor, axes=(0, arm)), 0, arm)
        totals = self.incidence.T @ tensor.reshape(len(self.incidence), num_columns)
        return totals.astype(float)
