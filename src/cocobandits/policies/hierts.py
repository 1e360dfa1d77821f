"""Hierarchical Thompson sampling (HierTS; Hong, Kveton, Zaheer and Ghavamzadeh, AISTATS 2022).

Users are alike by a common mean of which a Gaussian is known, and rewards are linear in actions A:

    μ* ~ N(μ_q, Σ_q),   θ_s | μ* ~ N(μ*, Σ_0),   Y = Aᵀ θ_s + N(0, σ²)

With G_s = σ⁻² Σ A Aᵀ, B_s = σ⁻² Σ A Y and T_s = (Σ_0⁻¹ + G_s)⁻¹, it draws μ_t from N(μ̄, Σ̄),

    Σ̄⁻¹ = Σ_q⁻¹ + Σ_s (Σ_0⁻¹ - Σ_0⁻¹ T_s Σ_0⁻¹),   μ̄ = Σ̄ (Σ_q⁻¹ μ_q + Σ_s Σ_0⁻¹ T_s B_s)

then θ_s from N(T_s (Σ_0⁻¹ μ_t + B_s), T_s), and plays its best action.

Here an action is an arm (A = e_a), θ_s are a user's arm means, and contexts are not used. Then it
is the linear mixed model of MTTS with Φ = I, and shares its algebra; what is played is the law of
those two draws, P(arm is best), without drawing, while its authors draw μ_t once per round for all.
They assume that μ_q, Σ_q, Σ_0 and σ are known. Here Σ_q = v I, and Σ_0 is fitted to all users by
empirical Bayes, starting at s² ((1-ρ) I + ρ 11ᵀ) or at what is given in full; `prior_users` = None
keeps it there. What they prove of concurrent users takes every arm once first; with few rewards per
user that is dear, so it is an option, `tries_all_first`.

Of the criteria of the paper's Table 1 it meets: learning across users (μ*), and concurrent users
and users who join at any time (sums over whoever there is). Uncertainties are apart in the model
(noise σ, user Σ_0, population Σ̄), but what is played and told is one Gaussian, so it does not meet
that. Partial context it meets as far as the fitted Σ_0 ties arms to each other: a user's rewards of
one arm then say something of that user's others. The latent structure of rewards is one Gaussian,
so it is not nonparametric.
"""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from cocobandits.checks import check_numbers, freeze
from cocobandits.errors import ConfigurationError, UnsupportedError
from cocobandits.models.features import num_terms
from cocobandits.models.histories import UserTable
from cocobandits.models.linear_mixed import LinearMixedModel
from cocobandits.policies.base import Arms, Problem
from cocobandits.policies.hierarchy import (
    HierarchyPolicy,
    HierarchyState,
    NumpyMatrix,
    check_prior_users,
    covariance_matrix,
)
from cocobandits.types import ArmVector


@dataclass(frozen=True)
class HierTsSettings:
    """What HierTS is told, in standardised units.

    Attributes:
        arm_mean: μ_q, the same for all arms.
        arm_deviation: √v, of the common mean of an arm.
        user_deviation: s, of a user's mean of an arm from the common one.
        user_correlation: ρ, of a user's deviations of two arms.
        user_covariance: Σ_0 itself, arm × arm as nested tuples; s and ρ count for nothing then.
        prior_users: how many users that Σ_0 counts for while it is fitted; None if it is known.
        tries_all_first: whether every user is given every arm once before anything else.
    """

    arm_mean: float = 0.0
    arm_deviation: float = 1.0
    user_deviation: float = 0.5
    user_correlation: float = 0.0
    user_covariance: Any = None
    prior_users: float | None = 10.0
    tries_all_first: bool = False

    def __post_init__(self) -> None:
        # Lists come back from JSON; tuples can be hashed.
        object.__setattr__(self, "user_covariance", freeze(self.user_covariance))
        check_prior_users(self)
        check_numbers(self, "finite", "arm_mean", "user_correlation")
        check_numbers(self, "positive", "arm_deviation", "user_deviation")
        if type(self.tries_all_first) is not bool:
            raise ConfigurationError(
                f"Expected True or False; got tries_all_first={self.tries_all_first!r}. Use False."
            )
        if not -1 < self.user_correlation < 1:
            raise ConfigurationError(
                "Expected a correlation above -1 and below 1; got "
                f"user_correlation={self.user_correlation}. 0 leaves arms independent."
            )

    def covariance(self, num_arms: int) -> NumpyMatrix:
        """Lay out Σ_0.

        Raises:
            ConfigurationError: so many arms cannot have the correlation or covariance given.
        """
        if self.user_covariance is not None:
            return covariance_matrix(self.user_covariance, num_arms)
        if 1 + (num_arms - 1) * self.user_correlation <= 0:
            raise ConfigurationError(
                f"Expected a correlation above {-1 / (num_arms - 1):.3g}, the least that "
                f"{num_arms} arms can all have; got user_correlation={self.user_correlation}. "
                "Raise it, or give user_covariance."
            )
        common = np.full((num_arms, num_arms), float(self.user_correlation))
        np.fill_diagonal(common, 1.0)
        return self.user_deviation**2 * common

    def mixed_model(self, problem: Problem, reward_noise: float) -> LinearMixedModel:
        """Describe the population of a problem: Φ = I, whatever the context.

        Raises:
            ConfigurationError: the correlation or covariance does not fit it.
        """
        tensor = np.zeros((problem.num_arms, problem.num_arms, num_terms(problem.features)))
        tensor[:, :, 0] = np.eye(problem.num_arms)
        return LinearMixedModel(
            jnp.asarray(tensor),
            float(self.arm_mean),
            float(self.arm_deviation),
            float(self.user_deviation),
            float(reward_noise),
            problem.features,
            jnp.asarray(self.covariance(problem.num_arms)),
        )


class HierTsPolicy(HierarchyPolicy):
    """Learn the common mean of every arm, and each user's deviation from it."""

    def __init__(self, problem: Problem, settings: HierTsSettings) -> None:
        model = settings.mixed_model(problem, problem.known_noise())
        super().__init__(problem, model, settings.prior_users)
        self.settings = settings

    def probabilities(
        self, state: HierarchyState, users: UserTable, user: int, arms: Arms = None
    ) -> ArmVector:
        """Compute P(arm is best), or choose among those not tried yet if all are to be first."""
        if self.settings.tries_all_first:
            counts = users.statistics.count[user]
            is_untried = (counts if arms is None else counts[jnp.asarray(arms)]) == 0
            if bool(is_untried.any()):
                return is_untried / jnp.sum(is_untried)
        return super().probabilities(state, users, user, arms)

    def widened(self, problem: Problem) -> "HierTsPolicy":
        """Give the new arm a common mean of its own, and every user the same correlation with it.

        Raises:
            UnsupportedError: the covariance was given for the arms there were.
        """
        if self.settings.user_covariance is not None:
            raise UnsupportedError(
                "Expected hierts without a covariance of its own; got "
                f"settings.hierts.user_covariance for {self.problem.num_arms} arms. Start a new "
                "study with a row for every arm."
            )
        return HierTsPolicy(problem, self.settings)
