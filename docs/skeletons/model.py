"""A population in which every arm has one mean, and users lie around it.

    μ_ia ~ N(m_a, s²),   m_a ~ N(c, d²),   r = μ_ia + N(0, σ²)

Copy this file to `src/cocobandits/populations/<name>.py`. Replace this text by what the model is,
with its formulas and their source, and what it does not do: this one looks at no context.
"""

from dataclasses import dataclass, replace

import jax.numpy as jnp

from cocobandits.errors import ConfigurationError
from cocobandits.numerics.traced import traced
from cocobandits.populations.base import PopulationModel
from cocobandits.populations.gaussian_belief import GaussianBelief, condition
from cocobandits.types import ArmVector, Context, Parameters, Scalar
from cocobandits.users.statistics import Statistics


# A tree, since a model is an argument of compiled functions: numbers are leaves, and what has to
# be known beforehand is static. The constructor alone checks them.
@traced("noise", "arm_deviation", "user_deviation", choices=("arms", "range"))
@dataclass(frozen=True)
class OneMeanModel(PopulationModel):
    """Learn the mean of every arm; how far users and arms spread is given.

    Attributes:
        arms: K.
        range: where arm means can lie.
        noise: σ.
        arm_deviation: d.
        user_deviation: s.
    """

    arms: int
    range: tuple[float, float]
    noise: float
    arm_deviation: float = 1.0
    user_deviation: float = 0.5

    def __post_init__(self) -> None:
        for name in ("noise", "arm_deviation", "user_deviation"):
            if not getattr(self, name) > 0:
                raise ConfigurationError(
                    f"Expected a positive number; got {name}={getattr(self, name)}. Raise it."
                )

    @property
    def num_parameters(self) -> int:
        """One per arm."""
        return self.arms

    @property
    def num_arms(self) -> int:
        """Number of arms K."""
        return self.arms

    @property
    def mean_range(self) -> tuple[float, float]:
        """The declared range; Gaussian tails reach beyond it."""
        return self.range

    @property
    def reward_noise(self) -> float:
        """Standard deviation σ of a reward."""
        return self.noise

    # For one particle and one user; callers batch with `jax.vmap`. It must be differentiable in the
    # parameters, and zero for a user without rewards.
    def log_evidence_at(
        self, parameters: Parameters, context: Context, statistics: Statistics
    ) -> Scalar:
        """Compute log p(rewards of a user | m)."""
        del context
        return condition(self._prior(parameters), statistics)[1]

    # A belief that is no mixture of Gaussians is a `Belief` of its own, in a file next to this one.
    def posterior_at(
        self, parameters: Parameters, context: Context, statistics: Statistics
    ) -> GaussianBelief:
        """Condition the population on a user's rewards."""
        del context
        return condition(self._prior(parameters), statistics)[0]

    # Leave this out if what was learned does not carry over. The new parameters come last.
    def with_arm(self) -> "OneMeanModel":
        """Make the same model with one more arm."""
        return replace(self, arms=self.arms + 1)

    # Parameters are whitened: their prior is N(0, I), and the model gives them units.
    def _arm_means(self, parameters: Parameters) -> ArmVector:
        centre = sum(self.range) / 2
        return centre + self.arm_deviation * parameters

    def _prior(self, parameters: Parameters) -> GaussianBelief:
        covariance = self.user_deviation**2 * jnp.eye(self.arms)
        means = self._arm_means(parameters)
        return GaussianBelief(jnp.zeros(1), means[None], covariance[None], self.noise)
