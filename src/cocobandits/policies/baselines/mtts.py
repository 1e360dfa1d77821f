"""Thompson sampling with a Gaussian linear mixed model (MTTS; Wan, Ge and Song, NeurIPS 2021).

Arm means are linear in known features, with coefficients shared by all users, and each user
deviates from that line by a Gaussian of known covariance:

    θ ~ N(m, v I),   μ_i = Φ(x_i) θ + δ_i,   δ_i ~ N(0, Σ),   r = μ_ia + N(0, σ²)

It draws a user's means from their posterior given all rewards, and plays the largest. What is
played here is the same law without the draw: P(arm is best) under the exact marginal
(`models.gaussian_hierarchy`). For speed, its authors' code (linlinlin97/MTTS) also has
approximations, which draw θ once per round, or hold it at its mean; they are not here.

Its authors assume that Φ, Σ, σ and the prior of θ, any Gaussian, are known. Here Φ is linear in the
terms of the context, and by default a line for every arm; by default Σ = s² I, under which rewards
of one arm say nothing about how a user deviates in others; with `prior_users` it is fitted. A
context of which not all is known enters by its average terms, without the spread that this adds.

Of the criteria of the paper's Table 1 it meets: learning across users (θ); and concurrent users and
users who join at any time (sums over whoever there is). Uncertainties are apart in the model (noise
σ, user Σ, population Λ⁻¹), but what is played and told is one Gaussian, so it does not meet that.
Partial context it meets only with a Σ that ties arms to each other. The latent structure of rewards
is Gaussian around a line, so it is not nonparametric.
"""

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from cocobandits.checks import check_numbers, freeze
from cocobandits.display import Line
from cocobandits.errors import ConfigurationError, UnsupportedError
from cocobandits.models.features import num_terms
from cocobandits.models.linear_mixed import LinearMixedModel
from cocobandits.policies.base import Problem
from cocobandits.policies.baselines.hierarchy import HierarchyPolicy, check_prior_users
from cocobandits.policies.description import Facts, PolicySettings, description


@description(
    "mtts",
    label="MTTS",
    line=Line("#CC79A7", (0, (6, 1.5, 1, 1.5, 1, 1.5)), 1.6),
    rewards=("gaussian",),
    assumes="gaussian",
    table_one="+---++",
    published="+----+",
    chooses="Thompson sampling",
    knows="learns a linear mixed model",
)
class MTTS(PolicySettings):
    """Thompson sampling with a Gaussian linear mixed model, in standardised units.

    Attributes:
        design: arm × coefficient × term of the context, as nested tuples: Φ(x) is linear in
            (1, x). None gives every arm its own line: one-hot(arm) ⊗ (1, x).
        coefficient_mean: m, the same for all coefficients.
        coefficient_deviation: √v.
        user_deviation: s; Σ = s² I.
        prior_users: how many users that Σ counts for while it is fitted; None if it is known.
    """

    design: Any = None
    coefficient_mean: float = 0.0
    coefficient_deviation: float = 1.0
    user_deviation: float = 0.5
    prior_users: float | None = None

    def __post_init__(self) -> None:
        # Lists come back from JSON; tuples can be hashed.
        object.__setattr__(self, "design", freeze(self.design))
        check_prior_users(self)
        check_numbers(self, "finite", "coefficient_mean")
        check_numbers(self, "positive", "coefficient_deviation", "user_deviation")

    def build(self, problem: Problem) -> "MttsPolicy":
        """Build the policy for a problem."""
        return MttsPolicy(problem, self)

    def informed(self, facts: Facts) -> "MTTS":
        """Use the design and moments of the environment's mixed model, if it has one."""
        if facts.mixed_model is None:
            return self
        known = replace(self, **facts.mixed_model)
        return replace(
            known,
            coefficient_mean=facts.unit * known.coefficient_mean,
            coefficient_deviation=facts.unit * known.coefficient_deviation,
            user_deviation=facts.unit * known.user_deviation,
        )

    def tensor(self, problem: Problem) -> "np.ndarray[tuple[int, int, int], np.dtype[np.float64]]":
        """Lay out the design for a problem.

        Raises:
            ConfigurationError: the given design does not fit it.
        """
        terms = num_terms(problem.features)
        if self.design is None:
            eye = np.eye(problem.num_arms * terms)
            return eye.reshape(problem.num_arms, terms, -1).transpose(0, 2, 1)
        try:
            tensor = np.array(self.design, dtype=float)
        except (TypeError, ValueError):
            tensor = np.zeros(0)  # rows of unequal length, or not of numbers
        is_fitting = tensor.ndim == 3 and tensor.shape[::2] == (problem.num_arms, terms)
        if not is_fitting or not np.all(np.isfinite(tensor)):
            raise ConfigurationError(
                f"Expected a design of {problem.num_arms} arms × coefficients × {terms} terms, all "
                f"finite; got shape {tensor.shape}. Give one row per arm."
            )
        return tensor

    def mixed_model(self, problem: Problem, reward_noise: float) -> LinearMixedModel:
        """Describe the population of a problem.

        Raises:
            ConfigurationError: the given design does not fit it.
        """
        return LinearMixedModel(
            jnp.asarray(self.tensor(problem)),
            float(self.coefficient_mean),
            float(self.coefficient_deviation),
            float(self.user_deviation),
            float(reward_noise),
            problem.features,
        )


class MttsPolicy(HierarchyPolicy):
    """Learn a line of the context for all users, and each user's deviation from it."""

    def __init__(self, problem: Problem, settings: MTTS) -> None:
        model = settings.mixed_model(problem, problem.known_noise())
        super().__init__(problem, model, settings.prior_users)
        self.settings = settings

    def widened(self, problem: Problem) -> "MttsPolicy":
        """Give the new arm its own line.

        Raises:
            UnsupportedError: the design was given for the present arms.
        """
        if self.settings.design is not None:
            raise UnsupportedError(
                f"Expected MTTS without a design; got design for {self.problem.num_arms} arms. "
                "Start a new study with a row for every arm."
            )
        return MttsPolicy(problem, self.settings)
