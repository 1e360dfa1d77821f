"""Karhunen-Loève basis from one-dimensional eigenpairs (paper, App. "KL expansion").

The product kernel on a tensor grid is a Kronecker product, so its eigenpairs are products of the
eigenpairs of one small matrix per axis; no matrix over all nodes is ever formed. Owns these
eigenpairs and their extension to contexts between nodes. Lengthscales and amplitude are fixed.
"""

from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from cocobandits.errors import ConfigurationError
from cocobandits.numerics.traced import traced
from cocobandits.populations.log_density.basis import Basis, Coefficients, leading_modes
from cocobandits.populations.log_density.grid import ContextAxis, GridAxes
from cocobandits.populations.log_density.kernel import KernelScales, correlation
from cocobandits.types import Context, Number, Parameters, Scalar

# Below this fraction of the largest eigenvalue an eigenvector is rounding error, and dividing by
# the eigenvalue (as the extension between nodes does) would magnify it.
_SMALLEST_EIGENVALUE = 1e-10


@traced("lengthscale", "eigenvalues", "eigenvectors", choices=("axis",))
@dataclass(frozen=True, eq=False)
class AxisBasis:
    """Eigenpairs of the correlation matrix of one axis, largest eigenvalue first."""

    axis: ContextAxis
    lengthscale: Number
    eigenvalues: Float[Array, " axis_mode"]
    eigenvectors: Float[Array, "node axis_mode"]

    def at(self, value: Scalar) -> Float[Array, " axis_mode"]:
        """Extend the eigenvectors to any point: φ_q(x) = Σ_n k(x, x_n) v_nq / λ_q (Nyström)."""
        distance = self.axis.squared_distance(value[None], self.axis.nodes)
        covariance = correlation(distance, self.lengthscale)[0]
        return covariance @ (self.eigenvectors / self.eigenvalues[None, :])

    def keep(self, num_modes: int) -> "AxisBasis":
        """Drop all but the leading modes."""
        return replace(
            self,
            eigenvalues=self.eigenvalues[:num_modes],
            eigenvectors=self.eigenvectors[:, :num_modes],
        )


def decompose(axis: ContextAxis, lengthscale: Number) -> AxisBasis:
    """Compute the eigenpairs of the correlation matrix over the nodes of one axis."""
    distance = axis.squared_distance(axis.nodes, axis.nodes)
    gram = np.asarray(correlation(distance, lengthscale))
    values, vectors = np.linalg.eigh(gram)
    values, vectors = values[::-1], vectors[:, ::-1]
    # The sign of an eigenvector is arbitrary; fix it so that machines agree. An antisymmetric one
    # has two largest entries, and only rounding makes one of them the first.
    first_largest = np.abs(vectors).round(6).argmax(axis=0)
    largest = np.take_along_axis(vectors, first_largest[None, :], axis=0)
    vectors = vectors * np.where(largest < 0, -1.0, 1.0)
    is_sound = values > _SMALLEST_EIGENVALUE * values[0]
    return AxisBasis(
        axis, lengthscale, jnp.asarray(values[is_sound]), jnp.asarray(vectors[:, is_sound])
    )


@traced(
    *("arm_functions", "arm_indices", "_contexts", "_context_indices", "_fixed", "_scales"),
    choices=(),
)
class KarhunenLoeveBasis(Basis):
    """The eigenfunctions with the largest eigenvalues, each scaled to its prior deviation."""

    def __init__(self, axes: GridAxes, scales: KernelScales, num_modes: int) -> None:
        num_arms = axes.num_arms
        arm = decompose(axes.arm, scales.arm_lengthscale)
        self._contexts = [
            decompose(axis, lengthscale)
            for axis, lengthscale in zip(axes.contexts, scales.context_lengthscales, strict=True)
        ]
        ladders = [jnp.log(basis.eigenvalues) for basis in [arm] * num_arms + self._contexts]
        modes = leading_modes(ladders, num_modes)
        if len(modes.eigenvalues) < num_modes:
            raise ConfigurationError(
                f"Expected at most {len(modes.eigenvalues)} modes on this grid; "
                f"got num_modes={num_modes}. Lower it or refine the grid."
            )
        self.arm_indices = modes.indices[:, :num_arms]
        self.arm_functions = arm.keep(int(self.arm_indices.max()) + 1).eigenvectors
        self.eigenvalues = modes.eigenvalues
        self._context_indices = modes.indices[:, num_arms:]
        self._fixed = scales
        self._scales = jnp.asarray(scales.amplitude * np.sqrt(modes.eigenvalues))

    @property
    def num_parameters(self) -> int:
        """One per mode."""
        return len(self._scales)

    def coefficients(self, parameters: Parameters, context: Context) -> Coefficients:
        """Compute amplitude · √λ_m · ψ_m(x) · ξ_m for every mode."""
        weights = self._scales
        for feature, basis in enumerate(self._contexts):
            weights = weights * basis.at(context[feature])[self._context_indices[:, feature]]
        return weights * parameters

    def kernel_scales(self, parameters: Parameters) -> KernelScales:
        """Return what was fixed."""
        del parameters
        return self._fixed
