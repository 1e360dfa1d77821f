"""Populations as normalised exponentials of a Gaussian process.

(Paper, "Modelling of Reward Distributions" and App. "KL expansion".) A particle ξ gives
f(μ, x) = amplitude · Σ_m √λ_m ξ_m φ_m(μ) ψ_m(x), and the population P(μ | x) is the softmax of f
over the cells of the arm grid. Evidence and gradient are contractions of that tensor with one
vector per arm:

    log p(history | ξ, x)     = log Σ_cells P(cell | x) ∏_a L_a(cell_a)
    ∂/∂ξ_m log p(history | ξ, x) = amplitude · √λ_m ψ_m(x) · (E[φ_m | history] - E[φ_m])
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Int

from cocobandits.errors import ConfigurationError, GridTooLargeError
from cocobandits.models.base import PopulationModel, Statistics
from cocobandits.models.log_density.basis import AxisBasis, decompose, leading_modes
from cocobandits.models.log_density.belief import GridBelief, grid_belief
from cocobandits.models.log_density.grid import Axis, ContextAxis
from cocobandits.models.log_density.kernel import KERNELS, KernelName
from cocobandits.models.log_density.likelihood import LikelihoodName, arm_log_likelihood
from cocobandits.types import Context, LogWeights, Parameters, Particles, Scalar

Tensor = Float[Array, "*cells"]
Core = Float[Array, "*axis_modes"]

_BYTES_PER_CELL = 3 * 8


@dataclass(frozen=True)
class LogDensityConfig:
    """Grid, kernel and likelihood; the defaults are the paper's, amplitude 2 where it is silent.

    `num_particles` and `memory_limit_gb` bound what a whole set of particles may need: a belief
    about one user takes up to three doubles per cell and particle.
    """

    num_arms: int
    context_axes: tuple[ContextAxis, ...] = (Axis(-1.0, 1.0, 10),)
    arm_axis: Axis = Axis(-2.0, 2.0, 20)
    reward_noise: float = 0.1
    kernel: KernelName = "squared-exponential"
    arm_lengthscale: float = 0.7
    context_lengthscale: float = 0.7
    amplitude: float = 2.0
    num_modes: int = 80
    likelihood: LikelihoodName = "cell"
    num_particles: int = 200
    memory_limit_gb: float = 2.0

    def __post_init__(self) -> None:
        if self.num_arms < 2:
            raise ConfigurationError(
                f"Expected at least 2 arms; got num_arms={self.num_arms}. Add an arm."
            )
        for name in (
            "reward_noise",
            "arm_lengthscale",
            "context_lengthscale",
            "amplitude",
            "memory_limit_gb",
        ):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise ConfigurationError(
                    f"Expected a positive number; got {name}={value}. Give a positive value."
                )
        for name in ("num_modes", "num_particles"):
            if getattr(self, name) < 1:
                raise ConfigurationError(
                    f"Expected at least 1; got {name}={getattr(self, name)}. Raise it."
                )
        for name, value, allowed in (
            ("kernel", self.kernel, tuple(KERNELS)),
            ("likelihood", self.likelihood, ("cell", "node")),
        ):
            if value not in allowed:
                raise ConfigurationError(
                    f"Expected {name} in {allowed}; got {name}={value!r}. Choose one of these."
                )
        self._check_memory()

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


class LogDensityModel(PopulationModel):
    """The paper's population model; equal and hashed by its configuration."""

    def __init__(self, config: LogDensityConfig) -> None:
        self.config = config
        arm = decompose(config.arm_axis, config.kernel, config.arm_lengthscale)
        contexts = [
            decompose(axis, config.kernel, config.context_lengthscale)
            for axis in config.context_axes
        ]
        bases = [arm] * config.num_arms + contexts
        modes = leading_modes([basis.eigenvalues for basis in bases], config.num_modes)
        if len(modes.eigenvalues) < config.num_modes:
            raise ConfigurationError(
                f"Expected at most {len(modes.eigenvalues)} modes on this grid; "
                f"got num_modes={config.num_modes}. Lower it or refine the grid."
            )
        arm_indices = modes.indices[:, : config.num_arms]
        num_arm_modes = int(arm_indices.max()) + 1
        self._arm_basis = arm.keep(num_arm_modes)
        self._context_bases: list[AxisBasis] = contexts
        self._context_indices = modes.indices[:, config.num_arms :]
        self._core_shape = (num_arm_modes,) * config.num_arms
        self._core_indices = np.ravel_multi_index(tuple(arm_indices.T), self._core_shape)
        self._scales = jnp.asarray(config.amplitude * np.sqrt(modes.eigenvalues))
        self.eigenvalues = modes.eigenvalues

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LogDensityModel) and self.config == other.config

    def __hash__(self) -> int:
        return hash(self.config)

    @property
    def num_parameters(self) -> int:
        """Number of modes M."""
        return self.config.num_modes

    @property
    def num_arms(self) -> int:
        """Number of arms K."""
        return self.config.num_arms

    @property
    def mean_range(self) -> tuple[float, float]:
        """From the lower edge of the lowest cell to the upper edge of the highest."""
        half = self.config.arm_axis.spacing / 2
        return self.config.arm_axis.low - half, self.config.arm_axis.high + half

    @property
    def reward_noise(self) -> float:
        """Standard deviation σ of a reward."""
        return self.config.reward_noise

    @property
    def captured_variance(self) -> float:
        """Share of the prior variance of f that the kept modes carry, averaged over the grid."""
        sizes = [self.config.arm_axis.size] * self.num_arms
        sizes += [axis.size for axis in self.config.context_axes]
        # A correlation matrix has trace equal to its size, and the Kronecker product their product.
        return float(np.sum(self.eigenvalues) / np.prod(np.array(sizes, dtype=float)))

    def log_density(self, parameters: Parameters, context: Context) -> Tensor:
        """Evaluate f(μ, x), up to normalisation, at every node of the arm grid."""
        tensor = self._core(parameters * self._mode_weights(context))
        for _ in range(self.num_arms):
            # Each pass contracts the first axis and appends its nodes as the last one.
            tensor = jnp.tensordot(tensor, self._arm_basis.eigenvectors, axes=(0, 1))
        return tensor

    def log_evidence(
        self, parameters: Parameters, context: Context, statistics: Statistics
    ) -> Scalar:
        """Compute log Σ_cells P(cell | x) ∏_a L_a(cell_a)."""
        weights = _unnormalised(self.log_density(parameters, context))
        likelihood, log_scale = self._likelihood_vectors(statistics)
        explained = weights
        for arm in reversed(range(self.num_arms)):
            explained = explained @ likelihood[arm]
        return jnp.log(explained) - jnp.log(jnp.sum(weights)) + log_scale

    def log_evidence_and_gradient(
        self, parameters: Parameters, context: Context, statistics: Statistics
    ) -> tuple[Scalar, Parameters]:
        """Compute the log-evidence and its gradient: posterior minus prior mean of the basis."""
        mode_weights = self._mode_weights(context)
        weights = _unnormalised(self.log_density(parameters, context))
        likelihood, log_scale = self._likelihood_vectors(statistics)
        prior, prior_total = self._basis_moments(weights, jnp.ones_like(likelihood))
        posterior, posterior_total = self._basis_moments(weights, likelihood)
        gradient = mode_weights * (posterior / posterior_total - prior / prior_total)
        return jnp.log(posterior_total) - jnp.log(prior_total) + log_scale, gradient

    def posterior(
        self, parameters: Parameters, context: Context, statistics: Statistics
    ) -> GridBelief:
        """Multiply the population by the user's likelihood and normalise."""
        return self._belief(_unnormalised(self.log_density(parameters, context)), statistics)

    def marginal(
        self, particles: Particles, log_weights: LogWeights, context: Context
    ) -> GridBelief:
        """Average the cell probabilities."""

        def add(number: Int[Array, ""], total: Tensor) -> Tensor:
            weights = _unnormalised(self.log_density(particles[number], context))
            return total + shares[number] * weights / jnp.sum(weights)

        shares = jnp.exp(log_weights - logsumexp(log_weights))
        # One particle after another: all at once would need a grid for each.
        empty = jnp.zeros((self.config.arm_axis.size,) * self.num_arms)
        total = jax.lax.fori_loop(0, len(particles), add, empty)
        return self._belief(total, Statistics.empty(self.num_arms))

    def _belief(self, weights: Tensor, statistics: Statistics) -> GridBelief:
        config = self.config
        settings = (config.arm_axis, config.reward_noise, config.likelihood)
        return grid_belief(
            weights, arm_log_likelihood(statistics, *settings), statistics, *settings
        )

    def _mode_weights(self, context: Context) -> Parameters:
        """Compute amplitude · √λ_m · ψ_m(x) for every mode."""
        weights = self._scales
        for feature, basis in enumerate(self._context_bases):
            weights = weights * basis.at(context[feature])[self._context_indices[:, feature]]
        return weights

    def _core(self, coefficients: Parameters) -> Core:
        """Collect the coefficients of modes with the same arm part into one small tensor."""
        core = jnp.zeros(int(np.prod(self._core_shape)))
        return core.at[self._core_indices].add(coefficients).reshape(self._core_shape)

    def _likelihood_vectors(
        self, statistics: Statistics
    ) -> tuple[Float[Array, "arm cell"], Scalar]:
        """Scale each arm's vector to a maximum of one, and return the log of what was taken out."""
        config = self.config
        logs = arm_log_likelihood(
            statistics, config.arm_axis, config.reward_noise, config.likelihood
        )
        peaks = jnp.max(logs, axis=1)
        return jnp.exp(logs - peaks[:, None]), jnp.sum(peaks)

    def _basis_moments(
        self, weights: Tensor, vectors: Float[Array, "arm cell"]
    ) -> tuple[Parameters, Scalar]:
        """Sum (weights · vectors) times each basis function, and times one."""
        # A column of ones beside the eigenvectors gives the total in the same contraction.
        ones = jnp.ones((self.config.arm_axis.size, 1))
        functions = jnp.concatenate([ones, self._arm_basis.eigenvectors], axis=1)
        moments = weights
        for arm in reversed(range(self.num_arms)):
            # Contracting the last cell axis each time leaves the arms in reverse order.
            moments = jnp.tensordot(moments, vectors[arm][:, None] * functions, axes=(arm, 0))
        moments = moments.transpose()
        inner = moments[(slice(1, None),) * self.num_arms]
        return inner.reshape(-1)[self._core_indices], moments[(0,) * self.num_arms]


def _unnormalised(log_density: Tensor) -> Tensor:
    return jnp.exp(log_density - jnp.max(log_density))
