"""Hierarchical Thompson sampling (HierTS; Hong, Kveton, Zaheer and Ghavamzadeh, AISTATS 2022).

Users are alike by a common mean of which a Gaussian is known, and rewards are linear in actions A:

    μ* ~ N(μ_q, Σ_q),   θ_s | μ* ~ N(μ*, Σ_0),   Y = Aᵀ θ_s + N(0, σ²)

With G_s = σ⁻² Σ A Aᵀ, B_s = σ⁻² Σ A Y and T_s = (Σ_0⁻¹ + G_s)⁻¹, it draws μ_t from N(μ̄, Σ̄),

    Σ̄⁻¹ = Σ_q⁻¹ + Σ_s (Σ_0⁻¹ - Σ_0⁻¹ T_s Σ_0⁻¹),   μ̄ = Σ̄ (Σ_q⁻¹ μ_q + Σ_s Σ_0⁻¹ T_s B_s)

then θ_s from N(T_s (Σ_0⁻¹ μ_t + B_s), T_s), and plays its best action.

Here an action is an arm (A = e_a), θ_s are a user's arm means, and contexts are not used. Then it
is the linear mixed model of MTTS with Φ = I, and shares its policy. The law of those two draws,
P(arm is best), is played without drawing, while its authors draw μ_t once per round for all.
They assume that μ_q, Σ_q, Σ_0 and σ are known. Here Σ_q = v I, and Σ_0 is fitted to all users by
empirical Bayes, starting at s² I; `prior_users` = None keeps it there. Their proof for concurrent
users plays every arm once first; with few rewards per user that is expensive, so no arm is forced.

Of the paper's Table 1 it meets partial context as far as the fitted Σ_0 correlates arms. Noise,
user and population are separate in the model, but only their sum, one Gaussian, is played and
reported, so it does not distinguish uncertainties.
"""

import jax.numpy as jnp
import numpy as np

from cocobandits.checks import check_numbers
from cocobandits.display import Line
from cocobandits.policies.base import Problem
from cocobandits.policies.baselines.mtts import PRIOR_USERS_REMEDY, HierarchyPolicy
from cocobandits.policies.description import PolicySettings, description
from cocobandits.populations.features import num_terms
from cocobandits.populations.hierarchy.linear_mixed import LinearMixedModel


@description(
    "hierts",
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
        check_numbers(self, "positive", "prior_users", remedy=PRIOR_USERS_REMEDY)
        check_numbers(self, "finite", "arm_mean")
        check_numbers(self, "positive", "arm_deviation", "user_deviation")

    def build(self, problem: Problem) -> HierarchyPolicy:
        """Build the policy for a problem."""
        return HierarchyPolicy(problem, self)

    def mixed_model(self, problem: Problem, reward_noise: float) -> LinearMixedModel:
        """Describe the population of a problem: Φ = I, whatever the context."""
        tensor = np.zeros((problem.num_arms, problem.num_arms, num_terms(problem.features)))
        tensor[:, :, 0] = np.eye(problem.num_arms)
        numbers = self.arm_mean, self.arm_deviation, self.user_deviation, reward_noise
        mean, deviation, own, noise = map(float, numbers)
        return LinearMixedModel(jnp.asarray(tensor), mean, deviation, own, noise, problem.features)
