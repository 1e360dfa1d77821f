"""A population that is a Gaussian mixture given the context, known and not learned.

    P(μ | x) = Σ_j w_j(x) N(m_j(x), F_j(x) F_j(x)ᵀ)

with log w_j (up to a constant), m_j and F_j linear in the terms of the context. Every simulated
population of the paper has this form (App. "Experimental Details"), so a policy that is given the
truth can be exact.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from cocobandits.checks import freeze
from cocobandits.errors import ConfigurationError
from cocobandits.numerics.traced import traced
from cocobandits.populations.base import PopulationModel
from cocobandits.populations.features import FeatureKinds, feature_vector, num_terms
from cocobandits.populations.gaussian_belief import GaussianBelief, condition
from cocobandits.populations.mixture.arms import GaussianArms
from cocobandits.populations.mixture.belief import MixtureBelief
from cocobandits.types import Context, Parameters, Scalar
from cocobandits.users.statistics import Statistics

# Up to here, who is best of correlated arms is exact.
_MOST_EXACT_ARMS = 3


@dataclass(frozen=True)
class ConditionalMixture:
    """Coefficients of the terms of the context, as nested tuples.

    Attributes:
        logits: component × term.
        means: component × arm × term.
        factors: component × arm × source × term.
    """

    logits: Any
    means: Any
    factors: Any

    def __post_init__(self) -> None:
        for name, num_axes in (("logits", 2), ("means", 3), ("factors", 4)):
            # Lists come back from JSON; tuples can be hashed.
            object.__setattr__(self, name, freeze(getattr(self, name)))
            array = _array(name, getattr(self, name))
            if array.ndim != num_axes or not np.all(np.isfinite(array)):
                raise ConfigurationError(
                    f"Expected finite numbers with {num_axes} axes; got {name} of shape "
                    f"{array.shape}. The axes are named in the class."
                )
        logits, means, factors = (
            np.array(part) for part in (self.logits, self.means, self.factors)
        )
        if not (
            len(logits) == len(means) == len(factors)
            and means.shape[1] == factors.shape[1]
            and logits.shape[1] == means.shape[2] == factors.shape[3]
        ):
            raise ConfigurationError(
                "Expected the same components, arms and terms everywhere; got logits "
                f"{logits.shape}, means {means.shape}, factors {factors.shape}. Align them."
            )

    @classmethod
    def from_arrays(cls, logits: Any, means: Any, factors: Any) -> "ConditionalMixture":
        """Take arrays or lists.

        Raises:
            ConfigurationError: their shapes do not fit together.
        """
        return cls(*(freeze(part) for part in (logits, means, factors)))

    @property
    def num_arms(self) -> int:
        """Number of arms K."""
        return len(self.means[0])

    @property
    def num_terms(self) -> int:
        """Number of terms of the context."""
        return len(self.logits[0])

    @cached_property
    def is_independent(self) -> bool:
        """Whether arms are independent within every component: no source moves two of them."""
        moves = np.any(np.array(self.factors) != 0, axis=3)
        return bool(np.all(np.sum(moves, axis=1) <= 1))

    def rescaled(self, centre: float, scale: float) -> "ConditionalMixture":
        """Describe the same population for rewards that are shifted by -centre, then scaled."""
        means = np.array(self.means)
        means[:, :, 0] -= centre
        return ConditionalMixture.from_arrays(
            self.logits, scale * means, scale * np.array(self.factors)
        )


class _Coefficients(NamedTuple):
    """The coefficients of a mixture as arrays."""

    logits: Float[ArrayLike, "component term"]
    means: Float[ArrayLike, "component arm term"]
    factors: Float[ArrayLike, "component arm source term"]


@traced("noise", "_coefficients", choices=("kinds", "range", "num_arms", "_is_independent"))
@dataclass(frozen=True)
class GaussianMixtureModel(PopulationModel):
    """A given mixture as a population model without parameters."""

    mixture: ConditionalMixture
    kinds: FeatureKinds
    range: tuple[float, float]
    noise: float

    def __post_init__(self) -> None:
        if self.mixture.num_terms != num_terms(self.kinds):
            raise ConfigurationError(
                f"Expected {num_terms(self.kinds)} terms for these features; got "
                f"num_terms={self.mixture.num_terms}. Give one term for the constant, one per "
                "continuous feature and one per category."
            )

    @property
    def num_parameters(self) -> int:
        """None."""
        return 0

    @cached_property
    def num_arms(self) -> int:
        """Number of arms K."""
        return self.mixture.num_arms

    @cached_property
    def _is_independent(self) -> bool:
        return self.mixture.is_independent

    @cached_property
    def _coefficients(self) -> _Coefficients:
        mixture = self.mixture
        return _Coefficients(*map(np.array, (mixture.logits, mixture.means, mixture.factors)))

    @property
    def mean_range(self) -> tuple[float, float]:
        """The declared range; Gaussian tails reach beyond it."""
        return self.range

    @property
    def reward_noise(self) -> float:
        """Standard deviation σ of a reward."""
        return self.noise

    def log_evidence_at(
        self, parameters: Parameters, context: Context, statistics: Statistics
    ) -> Scalar:
        """Compute log Σ_j w_j(x) p(rewards | component j)."""
        del parameters
        return condition(self._prior(context), statistics)[1]

    def posterior_at(
        self, parameters: Parameters, context: Context, statistics: Statistics
    ) -> GaussianBelief | MixtureBelief:
        """Reweight the components, and condition each."""
        belief = self.dense_posterior_at(parameters, context, statistics)
        if self.num_arms <= _MOST_EXACT_ARMS or not self._is_independent:
            return belief
        # Who is best of independent arms is found by one integral, however many there are.
        variances = jnp.diagonal(belief.covariances, axis1=1, axis2=2)
        noise = jnp.full(len(belief.means), self.noise)
        return MixtureBelief(belief.log_weights, GaussianArms(belief.means, variances, noise))

    def dense_posterior_at(
        self, parameters: Parameters, context: Context, statistics: Statistics
    ) -> GaussianBelief:
        """Condition each component with all its covariances."""
        del parameters
        return condition(self._prior(context), statistics)[0]

    def _prior(self, context: Context) -> GaussianBelief:
        terms = feature_vector(self.kinds, context)
        logits, means, factors = (jnp.asarray(part) @ terms for part in self._coefficients)
        covariances = jnp.einsum("jar,jbr->jab", factors, factors)
        return GaussianBelief(_normalised(logits), means, covariances, jnp.asarray(self.noise))


def _normalised(logits: Float[Array, " component"]) -> Float[Array, " component"]:
    shifted = logits - jnp.max(logits)
    return shifted - jnp.log(jnp.sum(jnp.exp(shifted)))


def _array(name: str, values: object) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    try:
        return np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"Expected numbers in rows of equal length; got {name}={values!r}. ({error})"
        ) from error
