"""Hilbert-space basis: waves on a padded box, scaled by the kernel's spectral density.

The waves do not depend on the kernel, only their scales do (Solin & Särkkä, 2020): with half-width
L and frequencies ω_j = jπ/L, Σ_j √(S(ω_j)/L) (ξ_j cos ω_j t + ξ'_j sin ω_j t) has the kernel with
spectral density S, wrapped around the box. So each particle can carry lengthscales and an amplitude
of its own, at no cost: they are whitened parameters like ξ, with log-normal priors.

Cosines and sines in pairs, and not the sines that vanish at the ends of the box: the prior then has
the same variance everywhere. A variance that falls towards the ends, times the square of a large
amplitude, is a firm belief that untried arms are mediocre.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from cocobandits.errors import ConfigurationError
from cocobandits.numerics.traced import traced
from cocobandits.populations.log_density.basis import (
    AxisFunctions,
    Basis,
    Coefficients,
    Indices,
    leading_modes,
)
from cocobandits.populations.log_density.grid import Axis, CategoricalAxis, GridAxes, Points
from cocobandits.populations.log_density.kernel import (
    KernelScales,
    correlation,
    log_spectral_density,
)
from cocobandits.types import Context, Number, Parameters, RngKey

Spectrum = Float[Array, " axis_mode"]

# Half-width of the box over half-width of the axis. The box is a ring: ends of an axis that are too
# close on it correlate. Arms have lengthscales well below their range and little beyond its ends;
# features have lengthscales as long as theirs.
_ARM_PADDING, _CONTEXT_PADDING = 1.1, 2.0
# More frequencies than any axis will keep.
_MOST_WAVES = 24
# More modes than can be equally strong, and how close logarithms of equal strengths are.
_LARGEST_GROUP, _EQUAL = 400, 1e-6
# Steps of the walk that holds the population still, and their lengths, in prior deviations: from
# the first to that share of it, drawn evenly on a log scale.
_WALK_STEPS, _LONGEST_STEP, _SHORTEST_SHARE = 20, 0.5, 0.08


class HyperDeviations(NamedTuple):
    """Prior standard deviations of the logarithms of the hyperparameters; zero fixes them."""

    lengthscale: float
    amplitude: float


@dataclass(frozen=True)
class _Waves:
    """A constant, then a cosine and a sine for each frequency, on one continuous axis."""

    axis: Axis
    padding: float

    @property
    def half_width(self) -> float:
        return self.padding * (self.axis.high - self.axis.low) / 2

    @property
    def frequencies(self) -> Spectrum:
        count = jnp.concatenate([jnp.zeros(1), jnp.repeat(jnp.arange(1.0, _MOST_WAVES + 1), 2)])
        return count * math.pi / self.half_width

    def log_spectrum(self, lengthscale: Number) -> Spectrum:
        density = log_spectral_density(self.frequencies, lengthscale)
        return density - math.log(self.half_width)

    def at(self, values: Points) -> AxisFunctions:
        middle = (self.axis.low + self.axis.high) / 2
        angles = (values - middle)[:, None] * self.frequencies[None, :]
        is_sine = np.arange(2 * _MOST_WAVES + 1) % 2 == 0
        is_sine[0] = False
        waves = jnp.where(is_sine[None, :], jnp.sin(angles), jnp.cos(angles))
        # Each frequency stands for itself and its negative, zero for itself alone.
        return waves.at[:, 0].divide(math.sqrt(2))


@dataclass(frozen=True)
class _Contrasts:
    """The eigenvectors of an axis of categories: their mean, and Helmert's contrasts.

    Any two categories correlate alike, so the vectors are the same for every lengthscale and only
    the eigenvalues 1 + (n-1)ρ and 1 - ρ move.
    """

    axis: CategoricalAxis

    @property
    def size(self) -> int:
        return self.axis.size

    def log_spectrum(self, lengthscale: Number) -> Spectrum:
        alike = correlation(jnp.ones((1, 1)), lengthscale)[0, 0]
        common = jnp.log1p((self.size - 1) * alike)
        return jnp.concatenate([common[None], jnp.full(self.size - 1, jnp.log1p(-alike))])

    def at(self, values: Points) -> AxisFunctions:
        vectors = np.zeros((self.size, self.size))
        vectors[:, 0] = 1 / math.sqrt(self.size)
        for q in range(1, self.size):
            vectors[:q, q], vectors[q, q] = 1.0, -q
            vectors[:, q] /= math.sqrt(q + q**2)
        return jnp.asarray(vectors)[values.astype(int)]


@traced(
    *("arm_functions", "arm_indices", "_context_indices", "_medians", "_deviations"),
    choices=("_arm", "_contexts", "_num_modes"),
)
class HilbertBasis(Basis):
    """The strongest products of waves at the prior medians; M coefficients, then hyperparameters.

    Parameters are ξ_1 … ξ_M, then the whitened log-lengthscale of the arms, of each feature, and
    the whitened log-amplitude.
    """

    def __init__(
        self, axes: GridAxes, medians: KernelScales, num_modes: int, deviations: HyperDeviations
    ) -> None:
        num_arms = axes.num_arms
        self._arm = _Waves(axes.arm, _ARM_PADDING)
        self._contexts = tuple(
            _Contrasts(axis)
            if isinstance(axis, CategoricalAxis)
            else _Waves(axis, _CONTEXT_PADDING)
            for axis in axes.contexts
        )
        self._medians, self._deviations = medians, deviations
        arm_ladder = self._arm.log_spectrum(medians.arm_lengthscale)
        ladders = [arm_ladder] * num_arms + [
            axis.log_spectrum(lengthscale)
            for axis, lengthscale in zip(self._contexts, medians.context_lengthscales, strict=True)
        ]
        indices = _whole_groups(ladders, num_arms, num_modes)
        self._num_modes = len(indices)
        self.arm_indices = indices[:, :num_arms]
        functions = self._arm.at(axes.arm.nodes)
        self.arm_functions = functions[:, : int(self.arm_indices.max()) + 1]
        self._context_indices = indices[:, num_arms:]

    @property
    def num_parameters(self) -> int:
        """One per mode, one per lengthscale, one for the amplitude."""
        return self._num_modes + 2 + len(self._contexts)

    def coefficients(self, parameters: Parameters, context: Context) -> Coefficients:
        """Compute √S_m · ψ_m(x) · ξ_m with the particle's own spectral density S."""
        values = parameters[: self._num_modes]
        for feature, axis in enumerate(self._contexts):
            columns = self._context_indices[:, feature]
            values = values * axis.at(context[feature][None])[0, columns]
        return jnp.exp(self._log_scales(parameters)) * values

    def interweave(self, rng_key: RngKey, parameters: Parameters) -> Parameters:
        """Walk in the hyperparameters while √S_m · ξ_m, and so the population, stays.

        Where rewards say much, ξ and the scales are tied to each other by the population, and
        moves that hold one still cannot go far with the other (Yu & Meng, 2011). These cost no
        likelihood.
        """
        num_hyper = self.num_parameters - self._num_modes

        def walk(now: Parameters, key: RngKey) -> tuple[Parameters, None]:
            key_length, key_step, key_accept = jax.random.split(key, 3)
            length = _LONGEST_STEP * _SHORTEST_SHARE ** jax.random.uniform(key_length)
            step = length * jax.random.normal(key_step, (num_hyper,))
            moved = now.at[self._num_modes : self.num_parameters].add(step)
            log_ratios = self._log_scales(now) - self._log_scales(moved)
            moved = moved.at[: self._num_modes].multiply(jnp.exp(log_ratios))
            # The last term is the volume by which the walk stretches ξ.
            log_ratio = (jnp.sum(now**2) - jnp.sum(moved**2)) / 2 + jnp.sum(log_ratios)
            is_accepted = jnp.log(jax.random.uniform(key_accept)) < log_ratio
            return jnp.where(is_accepted, moved, now), None

        return jax.lax.scan(walk, parameters, jax.random.split(rng_key, _WALK_STEPS))[0]

    def kernel_scales(self, parameters: Parameters) -> KernelScales:
        """Undo the whitening: median · exp(deviation · parameter)."""
        whitened = parameters[self._num_modes :]
        num_contexts = len(self._contexts)
        stretch = jnp.exp(self._deviations.lengthscale * whitened[: 1 + num_contexts])
        medians = self._medians
        return KernelScales(
            medians.arm_lengthscale * stretch[0],
            jnp.asarray(medians.context_lengthscales) * stretch[1:],
            medians.amplitude * jnp.exp(self._deviations.amplitude * whitened[1 + num_contexts]),
        )

    def _log_scales(self, parameters: Parameters) -> Coefficients:
        """Compute log √S_m."""
        hyper = self.kernel_scales(parameters)
        arm_log = self._arm.log_spectrum(hyper.arm_lengthscale)
        total = jnp.sum(arm_log[self.arm_indices], axis=1)
        for feature, axis in enumerate(self._contexts):
            columns = self._context_indices[:, feature]
            total = total + axis.log_spectrum(hyper.context_lengthscales[feature])[columns]
        return total / 2 + jnp.log(hyper.amplitude)


def _whole_groups(ladders: Sequence[Float[Array, "_"]], num_arms: int, num_modes: int) -> Indices:
    """Find the strongest modes, at least as many as asked for, and none without its equals.

    A cosine comes with its sine, and arms can change places, so that the prior treats all places
    and arms alike. Modes that do not vary with the arms cancel in the density and are left out.
    """
    found = leading_modes(ladders, 2 * num_modes + _LARGEST_GROUP)
    varies = np.any(found.indices[:, :num_arms] > 0, axis=1)
    indices, strengths = found.indices[varies], found.log_eigenvalues[varies]
    if len(indices) < num_modes:
        raise ConfigurationError(
            f"Expected at most {len(indices)} modes for these features; got num_modes={num_modes}. "
            "Lower it."
        )
    return indices[strengths > strengths[num_modes - 1] - _EQUAL]
