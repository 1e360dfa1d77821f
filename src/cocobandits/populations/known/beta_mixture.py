"""Given Beta-distributed success probabilities: known for every group, or uniform."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import ArrayLike, Float

from cocobandits.checks import freeze
from cocobandits.errors import ConfigurationError
from cocobandits.numerics.reward_grid import RewardGrid
from cocobandits.numerics.traced import traced
from cocobandits.populations.base import PopulationModel
from cocobandits.populations.features import FeatureKinds, feature_vector, num_terms
from cocobandits.populations.mixture.belief import MixtureBelief
from cocobandits.populations.mixture.beta_arms import BetaArms
from cocobandits.types import Context, Parameters, Scalar
from cocobandits.users.statistics import Statistics


@dataclass(frozen=True)
class BetaMixture:
    """Groups whose shares depend on the context, and the Beta law of each arm in each.

    Attributes:
        logits: group × term of the context.
        successes: α, group × arm.
        failures: β, group × arm.
    """

    logits: Any
    successes: Any
    failures: Any

    def __post_init__(self) -> None:
        for name in ("logits", "successes", "failures"):
            # Lists come back from JSON; tuples can be hashed.
            object.__setattr__(self, name, freeze(getattr(self, name)))
        alpha, beta = np.array(self.successes, float), np.array(self.failures, float)
        if not (
            alpha.ndim == 2
            and alpha.shape == beta.shape
            and len(alpha) == len(self.logits)
            and np.all(alpha > 0)
            and np.all(beta > 0)
        ):
            raise ConfigurationError(
                "Expected positive successes and failures, group × arm, and logits for each group; "
                f"got shapes {alpha.shape}, {beta.shape} and {np.shape(self.logits)}. Align them."
            )

    @classmethod
    def unknown(cls, num_arms: int, num_terms: int) -> "BetaMixture":
        """Hold every chance equally likely, for everybody."""
        ones = ((1.0,) * num_arms,)
        return cls(((0.0,) * num_terms,), ones, ones)

    @property
    def num_arms(self) -> int:
        """Number of arms K."""
        return len(self.successes[0])

    def rescaled(self, centre: float, scale: float) -> "BetaMixture":
        """Return the same population: success probabilities have no units."""
        del centre, scale
        return self


class _Counts(NamedTuple):
    """Coefficients and counts of all groups as arrays."""

    logits: Float[ArrayLike, "group term"]
    successes: Float[ArrayLike, "group arm"]
    failures: Float[ArrayLike, "group arm"]


@traced("_counts", choices=("kinds", "range", "num_arms"))
@dataclass(frozen=True)
class BetaMixtureModel(PopulationModel):
    """Given success probabilities as a population model without parameters."""

    mixture: BetaMixture
    kinds: FeatureKinds
    range: tuple[float, float]

    def __post_init__(self) -> None:
        if len(self.mixture.logits[0]) != num_terms(self.kinds):
            raise ConfigurationError(
                f"Expected {num_terms(self.kinds)} terms for these features; got "
                f"{len(self.mixture.logits[0])} in the logits. Give one term for the constant, one "
                "per continuous feature and one per category."
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
    def _counts(self) -> _Counts:
        mixture = self.mixture
        return _Counts(*map(np.array, (mixture.logits, mixture.successes, mixture.failures)))

    @property
    def mean_range(self) -> tuple[float, float]:
        """From failure to success."""
        return self.range

    @property
    def reward_noise(self) -> float:
        """Standard deviation of the least certain reward."""
        return (self.range[1] - self.range[0]) / 2

    @cached_property
    def reward_grid(self) -> RewardGrid:
        """Failure and success."""
        return RewardGrid.even(*self.range, 2)

    def log_evidence_at(
        self, parameters: Parameters, context: Context, statistics: Statistics
    ) -> Scalar:
        """Compute log Σ_j w_j(x) p(rewards | group j)."""
        del parameters
        prior = self._prior(context)
        return logsumexp(prior.log_weights + prior.arms.condition(statistics)[1])

    def posterior_at(
        self, parameters: Parameters, context: Context, statistics: Statistics
    ) -> MixtureBelief:
        """Reweight the groups, and count each arm's successes and failures."""
        del parameters
        return self._prior(context).condition(statistics)

    def with_arm(self) -> "BetaMixtureModel | None":
        """Know nothing of another arm; None if a population is given, which says nothing of it."""
        num_terms = len(self.mixture.logits[0])
        if self.mixture != BetaMixture.unknown(self.num_arms, num_terms):
            return None
        return replace(self, mixture=BetaMixture.unknown(self.num_arms + 1, num_terms))

    def _prior(self, context: Context) -> MixtureBelief:
        coefficients, alpha, beta = map(jnp.asarray, self._counts)
        logits = coefficients @ feature_vector(self.kinds, context)
        return MixtureBelief(jax.nn.log_softmax(logits), BetaArms(alpha, beta, self.range))
