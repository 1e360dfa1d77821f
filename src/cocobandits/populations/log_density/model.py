"""Populations as normalised exponentials of a Gaussian process.

(Paper, "Modelling of Reward Distributions" and App. "KL expansion".) A particle ξ gives
f(μ, x) = Σ_m c_m(ξ, x) φ_m(μ) with the functions and coefficients of a basis, and the population
P(μ | x) is the softmax of f over the cells of the arm grid. Evidence and gradient are contractions
of that tensor with one vector per arm:

    log p(history | ξ, x)        = log Σ_cells P(cell | x) ∏_a L_a(cell_a)
    ∂/∂c_m log p(history | ξ, x) = E[φ_m | history] - E[φ_m]
"""

import math
from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from cocobandits.checks import check_numbers
from cocobandits.errors import ConfigurationError, GridTooLargeError
from cocobandits.numerics.blocks import BLOCK_SIZE, block_size, once
from cocobandits.numerics.precision import DTYPES, Precision
from cocobandits.numerics.traced import traced
from cocobandits.populations.base import Hyperparameters, PopulationModel, floored_noise
from cocobandits.populations.log_density.basis import Basis, BasisName
from cocobandits.populations.log_density.belief import GridBelief
from cocobandits.populations.log_density.context_points import ContextPoints
from cocobandits.populations.log_density.expansion import Expansion
from cocobandits.populations.log_density.grid import Axis, ContextAxis, GridAxes
from cocobandits.populations.log_density.hilbert import HilbertBasis, HyperDeviations
from cocobandits.populations.log_density.karhunen_loeve import KarhunenLoeveBasis
from cocobandits.populations.log_density.kernel import KernelScales
from cocobandits.populations.log_density.noise_mixture import NoiseMixture, divide
from cocobandits.populations.log_density.tables import EvidenceTables, window_size
from cocobandits.populations.log_density.tensors import Tensor, marginals, outer_sum
from cocobandits.populations.truncated_normal import interval_log_likelihood
from cocobandits.types import (
    ArmCells,
    Context,
    LogWeights,
    Parameters,
    Particles,
    PerParticle,
    PossibleContext,
    RngKey,
    Scalar,
)
from cocobandits.users.statistics import Statistics
from cocobandits.users.table import UserRows

_BYTES_PER_CELL = 3 * 8
# Tables pay when the room for users is this many times the number of their points.
_USERS_PER_POINT = 8
# Tables with more coefficients than this, of all particles, would fill the memory.
_MOST_COEFFICIENTS = 20_000_000
# Cells of all particles that are read at once: as many as the processor keeps close.
_READ_CELLS = 320_000
# Cells of all tables of a block of particles: as many as the processor's cache holds.
_BLOCK_CELLS = 1_600_000


@traced(
    *("reward_noise", "arm_lengthscale", "context_lengthscale", "amplitude"),
    *("lengthscale_deviation", "amplitude_deviation", "noise_deviation"),
    choices=(
        *("num_arms", "context_axes", "arm_axis", "basis", "context_points", "precision"),
        "is_noise_learned",
    ),
)
@dataclass(frozen=True)
class LogDensityConfig:
    """Grid and kernel; the defaults are the paper's, amplitude 2 where it is silent.

    With the basis "hilbert", lengthscales and amplitude are prior medians, and the deviations
    those of their logarithms; with `noise_deviation` the noise is learned too.
    With `context_points` moves tabulate densities at so many points per feature and read them in
    between; None computes every user's own. "single" precision computes densities in 32 bits.
    `num_particles` and `memory_limit_gb` bound what the particles' densities of one user may need,
    at three doubles per cell and particle. What is read off them comes on top: for `coids` a few
    times as much, and many times with a learned noise.
    """

    num_arms: int
    context_axes: tuple[ContextAxis, ...] = (Axis(-1.0, 1.0, 10),)
    arm_axis: Axis = Axis(-2.0, 2.0, 20)
    reward_noise: float = 0.1
    arm_lengthscale: float = 0.7
    context_lengthscale: float = 0.7
    amplitude: float = 2.0
    num_modes: int = 80
    basis: BasisName = "karhunen-loeve"
    lengthscale_deviation: float = 0.4
    amplitude_deviation: float = 0.6
    noise_deviation: float = 0.0
    context_points: int | None = None
    precision: Precision = "double"
    num_particles: int = 200
    memory_limit_gb: float = 2.0

    def __post_init__(self) -> None:
        if self.num_arms < 2:
            raise ConfigurationError(
                f"Expected at least 2 arms; got num_arms={self.num_arms}. Add an arm."
            )
        lengthscales = "arm_lengthscale", "context_lengthscale"
        check_numbers(
            self, "positive", "reward_noise", *lengthscales, "amplitude", "memory_limit_gb"
        )
        deviations = "lengthscale_deviation", "amplitude_deviation", "noise_deviation"
        remedy = "Zero fixes what it is the deviation of."
        check_numbers(self, "not negative", *deviations, remedy=remedy)
        for name in ("num_modes", "num_particles", "context_points"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise ConfigurationError(
                    f"Expected at least 1; got {name}={getattr(self, name)}. Raise it."
                )
        for name, value, allowed in (
            ("basis", self.basis, ("karhunen-loeve", "hilbert")),
            ("precision", self.precision, tuple(DTYPES)),
        ):
            if value not in allowed:
                raise ConfigurationError(
                    f"Expected {name} in {allowed}; got {name}={value!r}. Choose one of these."
                )
        self._check_memory()

    @cached_property
    def is_noise_learned(self) -> bool:
        """Whether each particle has a noise of its own."""
        return self.noise_deviation > 0

    def _check_memory(self) -> None:
        num_cells = self.arm_axis.size**self.num_arms
        num_bytes = _BYTES_PER_CELL * num_cells * self.num_particles
        if num_bytes > self.memory_limit_gb * 1e9:
            most = int(
                (self.memory_limit_gb * 1e9 / (_BYTES_PER_CELL * self.num_particles))
                ** (1 / self.num_arms)
            )
            remedy = f"Lower the nodes per arm to {most}, or use" if most > 1 else "Use"
            raise GridTooLargeError(
                f"Expected a grid within {self.memory_limit_gb:g} GB; got "
                f"{self.arm_axis.size}^{self.num_arms} = {num_cells:,} cells x "
                f"{self.num_particles} particles = {num_bytes:,} bytes. "
                f"{remedy} fewer arms or particles, or raise memory_limit_gb."
            )


@traced("config", "basis", "_expansion", choices=("_window",))
class LogDensityModel(PopulationModel):
    """The paper's population model; equal and hashed by its configuration.

    Its basis is computed once, when it is constructed, and is part of the tree.
    """

    def __init__(self, config: LogDensityConfig) -> None:
        self.config = config
        self.basis = _build_basis(config)
        self._expansion = Expansion.of(self.basis, config.num_arms, config.precision)
        self._window = window_size(config.reward_noise, config.arm_axis)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LogDensityModel) and self.config == other.config

    def __hash__(self) -> int:
        return hash(self.config)

    @property
    def num_parameters(self) -> int:
        """Those of the basis, and one for the noise if it is learned."""
        return self.basis.num_parameters + int(self.config.is_noise_learned)

    @property
    def num_arms(self) -> int:
        """Number of arms K."""
        return self.config.num_arms

    @property
    def particles_at_once(self) -> int:
        """As many as stay in the cache; few where each has tables of its own noise."""
        if self.config.is_noise_learned:
            return BLOCK_SIZE
        return max(1, _READ_CELLS // self.config.arm_axis.size**self.num_arms)

    @property
    def mean_range(self) -> tuple[float, float]:
        """From the lower edge of the lowest cell to the upper edge of the highest."""
        half = self.config.arm_axis.spacing / 2
        return self.config.arm_axis.low - half, self.config.arm_axis.high + half

    @property
    def reward_noise(self) -> float:
        """Standard deviation σ of a reward; its prior median if it is learned."""
        return self.config.reward_noise

    @property
    def noise_range(self) -> tuple[float, float]:
        """Two prior deviations to either side of the median."""
        stretch = math.exp(2 * self.config.noise_deviation)
        return self.config.reward_noise / stretch, self.config.reward_noise * stretch

    def noise(self, parameters: Parameters) -> Scalar:
        """Read the standard deviation of a reward under a particle."""
        median = jnp.asarray(self.config.reward_noise)
        if not self.config.is_noise_learned:
            return median
        learned = median * jnp.exp(self.config.noise_deviation * parameters[-1])
        return floored_noise(learned, self.mean_range)

    @property
    def captured_variance(self) -> float:
        """Share of the prior variance of f that the kept modes carry, averaged over the grid.

        Hyperparameters are at their medians.
        """
        num_modes = len(self.basis.arm_indices)
        ones = jnp.zeros(self.num_parameters).at[:num_modes].set(1.0)
        nodes = [axis.nodes for axis in self.config.context_axes]
        corners = [part.ravel() for part in jnp.meshgrid(*nodes)]
        contexts = jnp.stack(corners, axis=1) if nodes else jnp.zeros((1, 0))
        squares = jax.vmap(lambda x: self.basis.coefficients(ones, x) ** 2)(contexts)
        axis_squares = jnp.mean(self.basis.arm_functions**2, axis=0)
        variances = jnp.mean(squares, axis=0) * jnp.prod(
            axis_squares[self.basis.arm_indices], axis=1
        )
        return float(jnp.sum(variances)) / self.config.amplitude**2

    def log_density(self, parameters: Parameters, context: Context) -> Tensor:
        """Evaluate f(μ, x), up to normalisation, at every node of the arm grid."""
        return self._expansion.expand(self.basis.coefficients(parameters, context))

    def log_evidence_at(
        self, parameters: Parameters, context: Context, statistics: Statistics
    ) -> Scalar:
        """Compute log Σ_cells P(cell | x) ∏_a L_a(cell_a)."""
        masses, _ = _exponentials(self.log_density(parameters, context))
        log_likelihood, peak = _centred(self._log_likelihood(self.noise(parameters), statistics))
        likelihood = jnp.exp(log_likelihood).astype(masses.dtype)
        explained = masses
        for arm in reversed(range(self.num_arms)):
            explained = explained @ likelihood[arm]
        # Rounding to nothing would say that no such user can be.
        explained = jnp.maximum(explained, np.finfo(masses.dtype).tiny)
        ratio = jnp.log(explained) - jnp.log(jnp.sum(masses))
        return ratio.astype(float) + peak

    def log_evidence_and_gradient_at(
        self, parameters: Parameters, context: Context, statistics: Statistics
    ) -> tuple[Scalar, Parameters]:
        """Compute the log-evidence and its gradient: posterior minus prior mean of the basis."""
        coefficients, pull_back = jax.vjp(
            lambda given: self.basis.coefficients(given, context), parameters
        )
        log_density = self._expansion.expand(coefficients)
        log_likelihood, peak = _centred(self._log_likelihood(self.noise(parameters), statistics))
        prior, log_prior_total = _exponentials(log_density)
        joint, log_posterior_total = _exponentials(_explain(log_density, log_likelihood))
        posterior = joint / jnp.sum(joint)
        # One pass over the basis for both means.
        (gradient,) = pull_back(self._expansion.sums(posterior - prior / jnp.sum(prior)))
        if self.config.is_noise_learned:
            shares = marginals(posterior)
            gradient = gradient + self._noise_gradient(parameters, statistics, shares)
        return log_posterior_total - log_prior_total + peak, gradient

    def log_likelihood_and_gradient(
        self, particles: Particles, rows: UserRows
    ) -> tuple[PerParticle, Particles]:
        """Sum over users by tables at a few contexts where users outnumber those by far."""
        tables = self._tables()
        if (
            tables is None
            or rows.contexts.ndim > 2  # tables are read at one context per user
            or _USERS_PER_POINT * tables.points.count > len(rows.weights)
            or tables.num_coefficients * len(particles) > _MOST_COEFFICIENTS
        ):
            return super().log_likelihood_and_gradient(particles, rows)
        plan = tables.plan(rows)
        num_cells = tables.points.count * self.config.arm_axis.size**self.num_arms
        return tables.sum_rows(particles, plan, _BLOCK_CELLS // num_cells)

    def hyperparameters(self, parameters: Parameters) -> Hyperparameters:
        """Read lengthscales and amplitude if the basis learns them, and the noise if it is."""
        learned = Hyperparameters()
        if self.config.basis == "hilbert":
            scales = self.basis.kernel_scales(parameters)
            learned = Hyperparameters(*map(jnp.asarray, scales))
        return learned._replace(
            noise=self.noise(parameters) if self.config.is_noise_learned else None
        )

    def interweave(self, rng_key: RngKey, parameters: Parameters) -> Parameters:
        """Move the hyperparameters while the population stays."""
        return self.basis.interweave(rng_key, parameters)

    def posterior_at(
        self, parameters: Parameters, context: Context, statistics: Statistics
    ) -> GridBelief:
        """Multiply the population by the user's likelihood and normalise."""
        noise = self.noise(parameters)
        log_likelihood, _ = _centred(self._log_likelihood(noise, statistics))
        masses, _ = _exponentials(_explain(self.log_density(parameters, context), log_likelihood))
        return self._belief(masses, noise, statistics)

    def average(
        self,
        particles: Particles,
        log_weights: LogWeights,
        context: PossibleContext,
        statistics: Statistics,
    ) -> GridBelief | NoiseMixture:
        """Average the cell probabilities; by noise where particles have noises of their own."""
        shares = jnp.exp(log_weights - logsumexp(log_weights))
        if not self.config.is_noise_learned:
            total = self._sum_masses(particles, shares, context, statistics)
            return self._belief(total, self.noise(particles[0]), statistics)
        divided, noises = divide(shares, jax.vmap(self.noise)(particles))
        totals = self._sum_masses(particles, divided, context, statistics)
        weights = jnp.sum(divided, axis=0)
        # Where no particle is, any cells will do.
        masses = totals + (weights == 0).reshape(-1, *(1,) * self.num_arms)
        parts = jax.vmap(self._belief, in_axes=(0, 0, None))(masses, noises, statistics)
        return NoiseMixture.of(jnp.log(weights), parts)

    def _sum_masses(
        self,
        particles: Particles,
        shares: Float[Array, "particle *noise"],
        context: PossibleContext,
        statistics: Statistics,
    ) -> Float[Array, "*noise_and_cells"]:
        """Add up the cell probabilities of all particles, times their shares."""

        def masses_of(parameters: Parameters) -> Tensor:
            belief = self.posterior(parameters, context, statistics)
            assert isinstance(belief, GridBelief)
            return belief.masses

        def add(total: Tensor, block: tuple[Particles, Array]) -> tuple[Tensor, None]:
            rows = jax.vmap(masses_of)(block[0]).reshape(len(block[1]), -1)
            weights = jnp.moveaxis(block[1], 0, -1)
            weights = weights / jnp.broadcast_to(jnp.sum(rows, axis=1), weights.shape)
            return total + weights.astype(rows.dtype) @ rows, None

        # Block after block: all at once would need a grid for each particle.
        size = block_size(len(particles), self.particles_at_once)
        noises = shares.shape[1:]
        blocks = particles.reshape(-1, size, self.num_parameters), shares.reshape(-1, size, *noises)
        cells = (self.config.arm_axis.size,) * self.num_arms
        total = jax.lax.scan(add, jnp.zeros((*noises, math.prod(cells))), blocks)[0]
        return total.reshape(*noises, *cells)

    def _tables(self) -> EvidenceTables | None:
        config = self.config
        if config.context_points is None or config.is_noise_learned:
            return None
        points = ContextPoints(config.context_axes, config.context_points)
        given = self.basis, self._expansion, points, config.arm_axis, config.reward_noise
        return EvidenceTables(*given, self._window)

    def _belief(self, masses: Tensor, noise: Scalar, statistics: Statistics) -> GridBelief:
        return GridBelief.of(masses, statistics, self.config.arm_axis, noise)

    def _log_likelihood(self, noise: Scalar, statistics: Statistics) -> ArmCells:
        return interval_log_likelihood(statistics, noise, self.config.arm_axis.edges)

    def _noise_gradient(
        self, parameters: Parameters, statistics: Statistics, shares: ArmCells
    ) -> Parameters:
        """Weigh the slope of each cell's log-likelihood by the user's posterior of that cell."""
        _, pull_back = jax.vjp(
            lambda given: self._log_likelihood(self.noise(given), statistics), parameters
        )
        return pull_back(shares)[0]


def _centred(log_likelihood: ArmCells) -> tuple[ArmCells, Scalar]:
    """Take out each arm's peak: long histories have large ones, and densities may be in 32 bits."""
    peaks = jnp.max(log_likelihood, axis=1)
    return log_likelihood - peaks[:, None], jnp.sum(peaks)


def _explain(log_density: Tensor, log_likelihood: ArmCells) -> Tensor:
    """Add the log-likelihood of every arm, in the precision of the density.

    In logarithms, so that a user far from all of a particle's mass is not lost to rounding.
    """
    return log_density + outer_sum(log_likelihood).astype(log_density.dtype)


def _exponentials(log_masses: Tensor) -> tuple[Tensor, Scalar]:
    """Compute masses with their largest at one, and the logarithm of the sum of all as given."""
    # Flat, since the processor likes long runs.
    flat = log_masses.ravel()
    peak = jnp.max(flat)
    masses = once(jnp.exp(flat - peak))
    log_total = jnp.log(jnp.sum(masses)).astype(float) + peak
    return masses.reshape(log_masses.shape), log_total


def _build_basis(config: LogDensityConfig) -> Basis:
    axes = GridAxes(config.num_arms, config.arm_axis, config.context_axes)
    medians = KernelScales(
        config.arm_lengthscale,
        jnp.full(len(config.context_axes), config.context_lengthscale),
        config.amplitude,
    )
    if config.basis == "karhunen-loeve":
        return KarhunenLoeveBasis(axes, medians, config.num_modes)
    deviations = HyperDeviations(config.lengthscale_deviation, config.amplitude_deviation)
    return HilbertBasis(axes, medians, config.num_modes, deviations)
