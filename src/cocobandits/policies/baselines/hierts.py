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
empirical Bayes, starting at s² I; `prior_users` = None keeps it there. What they prove of
concurrent users takes every arm once first; with few rewards per user that is expensive, so no arm
is forced here.

Of the criteria of the paper's Table 1 it meets: learning across users (μ*), and concurrent users
and users who join at any time (sums over whoever there is). Uncertainties are apart in the model
(noise σ, user Σ_0, population Σ̄), but what is played and told is one Gaussian, so it does not meet
that. Partial context it meets as far as the fitted Σ_0 ties arms to each other: a user's rewards of
one arm then say something of that user's others. The latent structure of rewards is one Gaussian,
so it is not nonparametric.
"""

import jax.numpy as jnp
import numpy as np

from cocobandits.checks import check_numbers
from cocobandits.display import Line
from cocobandits.models.features import num_terms
from cocobandits.models.linear_mixed import LinearMixedModel
from cocobandits.policies.base import Problem
from cocobandits.policies.baselines.hierarchy import HierarchyPolicy, check_prior_users
from cocobandits.policies.description import PolicySettings, description


@description(
    "hierts",
    label="HierTS",
    line=Line("#CC79A7", "-", 1.2),
    rewards=("gaussian",),
    assumes="gaussian",
    table_one="++--++",
    published="+/--++",
    chooses="Thompson sampling",
    knows="learns one Gaussian of all users, without context",
)
class HierTS(PolicySettings):
    """Hierarchical Thompson sampling, in standardised units.

    Attributes:
        arm_mean: μ_q, the same for all arms.
        arm_deviation: √v, of the common mean of an arm.
        user_deviation: s, of a user's mean of an arm from the common one.
        prior_users: how many users that Σ_0 counts for while it is fitted; None if it is known.
    """

    arm_mean: float = 0.0
    arm_deviation: float = 1.0
    user_deviation: float = 0.5
    prior_users: float | None = 10.0

    def __post_init__(self) -> None:
        check_prior_users(self)
        check_numbers(self, "finite", "arm_mean")
        check_numbers(self, "positive", "arm_deviation", "user_deviation")

    def build(self, problem: Problem) -> "HierTsPolicy":
        """Build the policy for a problem."""
        return HierTsPolicy(problem, self)

    def mixed_model(self, problem: Problem, reward_noise: float) -> LinearMixedModel:
        """Describe the population of a problem: Φ = I, whatever the context."""
        tensor = np.zeros((problem.num_arms, problem.num_arms, num_terms(problem.features)))
        tensor[:, :, 0] = np.eye(problem.num_arms)
        return LinearMixedModel(
            jnp.asarray(tensor),
            float(self.arm_mean),
            float(self.arm_deviation),
            float(self.user_deviation),
            float(reward_noise),
            problem.features,
        )


class HierTsPolicy(HierarchyPolicy):
    """Learn the common mean of every arm, and each user's deviation from it."""

    def __init__(self, problem: Problem, settings: HierTS) -> None:
        model = settings.mixed_model(problem, problem.known_noise())
        super().__init__(problem, model, settings.prior_users)
        self.settings = settings

    def widened(self, problem: Problem) -> "HierTsPolicy":
        """Give the new arm a common mean."""
        return HierTsPolicy(problem, self.settings)
