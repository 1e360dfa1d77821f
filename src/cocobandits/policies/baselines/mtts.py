"""Thompson sampling with a Gaussian linear mixed model (MTTS; Wan, Ge and Song, NeurIPS 2021).

Arm means are linear in known features, with coefficients shared by all users, and each user
deviates from that line by a Gaussian of known covariance:

    θ ~ N(m, v I),   μ_i = Φ(x_i) θ + δ_i,   δ_i ~ N(0, Σ),   r = μ_ia + N(0, σ²)

It draws a user's means from their posterior given all rewards, and plays the largest. Here the same
law is played without the draw: P(arm is best) under the exact marginal
(`populations.hierarchy.gaussian_hierarchy`). Its authors' code (linlinlin97/MTTS) also has
approximations for speed, which draw θ once per round, or hold it at its mean; they are not here.

Its authors assume that Φ, Σ, σ and the prior of θ, any Gaussian, are known. Here Φ is linear in the
terms of the context, and by default a line for every arm. By default Σ = s² I, under which rewards
of one arm say nothing about how a user deviates in others; with `prior_users` it is fitted, and
only then partial context (Table 1) is met. Noise, user and population are separate in the model,
but only their sum is played and reported. Missing features enter by their average terms, without
the spread that this adds.
"""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from cocobandits.checks import check_numbers, freeze
from cocobandits.display import Line
from cocobandits.errors import ConfigurationError, UnsupportedError
from cocobandits.policies.base import (
    Arms,
    History,
    Policy,
    Problem,
    ReadFn,
    Readings,
    UserData,
    best_probability,
)
from cocobandits.policies.description import Facts, PolicySettings, description
from cocobandits.populations.features import num_terms
from cocobandits.populations.gaussian_belief import GaussianBelief
from cocobandits.populations.hierarchy.gaussian_hierarchy import (
    Sums,
    fitted_covariance,
    prior_sums,
    replaced,
    sums_of,
    user_belief,
)
from cocobandits.populations.hierarchy.linear_mixed import LinearMixedModel
from cocobandits.types import ArmVector, PossibleContext, RngKey
from cocobandits.users.statistics import Statistics
from cocobandits.users.table import Change, UserTable

# What they are if nobody says otherwise.
_MOMENTS = {"coefficient_mean": 0.0, "coefficient_deviation": 1.0, "user_deviation": 0.5}
PRIOR_USERS_REMEDY = "Use 10, or None to keep the covariance as it is."


@description(
    "mtts",
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
        coefficient_mean: m, the same for all coefficients; 0 if None.
        coefficient_deviation: √v; 1 if None.
        user_deviation: s; Σ = s² I; 0.5 if None.
        prior_users: how many users that Σ counts for while it is fitted; None if it is known.

    In a simulation whose environment has a mixed model, None stands for its design and moments.
    """

    design: Any = None
    coefficient_mean: float | None = None
    coefficient_deviation: float | None = None
    user_deviation: float | None = None
    prior_users: float | None = None

    def __post_init__(self) -> None:
        # Lists come back from JSON; tuples can be hashed.
        object.__setattr__(self, "design", freeze(self.design))
        check_numbers(self, "positive", "prior_users", remedy=PRIOR_USERS_REMEDY)
        check_numbers(self, "finite", "coefficient_mean")
        check_numbers(self, "positive", "coefficient_deviation", "user_deviation")

    def informed(self, facts: Facts) -> "PolicySettings":
        """Use the design and moments of the environment's mixed model, if it has one."""
        if facts.mixed_model is None:
            return self
        moments = {name: facts.unit * facts.mixed_model[name] for name in _MOMENTS}
        return self.filled(design=facts.mixed_model["design"], **moments)

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
        """Describe the population of a problem."""
        given = self.filled(**_MOMENTS)
        moments = (getattr(given, name) for name in _MOMENTS)
        mean, deviation, own, noise = map(float, (*moments, reward_noise))
        tensor = jnp.asarray(self.tensor(problem))
        return LinearMixedModel(tensor, mean, deviation, own, noise, problem.features)


class LmmState(NamedTuple):
    """The posterior of the coefficients as sums over users, and Σ as given or fitted."""

    sums: Sums
    covariance: Float[Array, "arm arm"]


class HierarchyPolicy(Policy[LmmState]):
    """Learn one line for all users exactly, and each user's deviation from it.

    Its settings return the model from `mixed_model`. Σ is known, or a step of EM per reward fits it
    (empirical Bayes); the effect of rewards that are later withdrawn wears off with further steps.
    """

    def __init__(self, problem: Problem, settings: Any) -> None:
        super().__init__(problem, settings)
        self.model: LinearMixedModel = settings.mixed_model(problem, problem.known_noise())

    def init(self, rng_key: RngKey) -> LmmState:
        """Start from the prior of the coefficients."""
        return LmmState(prior_sums(self.model), self.model.covariance())

    def update(self, rng_key: RngKey, state: LmmState, change: Change) -> tuple[LmmState, None]:
        """Replace the user's terms in the sums, and fit the covariance if it is not known."""
        before, after = change.table.of(change.user), (change.context, change.statistics)
        sums = replaced(self._model(state), state.sums, before, after)
        learned = LmmState(sums, state.covariance)
        if self.settings.prior_users is None:
            return learned, None
        return self._fitted(learned, change.applied()), None

    def probabilities(self, state: LmmState, users: UserTable, user: int, arms: Arms) -> ArmVector:
        """Compute P(arm is best) for a user."""
        belief = self._belief(state, users.of(user))
        return best_probability(belief, self.problem.num_arms, arms)

    def add_arm(
        self, rng_key: RngKey, state: LmmState, users: UserTable, history: History
    ) -> tuple["HierarchyPolicy", LmmState]:
        """Give the new arm coefficients with their prior, last, and independent deviations.

        The sums stay: nobody was given the arm.
        """
        policy = self.with_arm()
        fresh, size = policy.init(rng_key), self.problem.num_arms
        covariance = fresh.covariance.at[:size, :size].set(state.covariance)
        return policy, LmmState(state.sums.extended(fresh.sums), covariance)

    def read(self, state: LmmState, users: UserTable, data: UserData, read_fn: ReadFn) -> Readings:
        """Apply the function to the one belief."""
        return Readings.of_one(_read(read_fn, self._belief(state, data)))

    def prior(self, state: LmmState, users: UserTable, context: PossibleContext) -> GaussianBelief:
        """Return N(Φ θ̂, Φ Λ⁻¹ Φᵀ + Σ)."""
        return self._belief(state, (context, Statistics.empty(self.problem.num_arms)))

    def _belief(self, state: LmmState, data: UserData) -> GaussianBelief:
        return user_belief(self._model(state), state.sums, *data, self.problem.known_noise())

    def _model(self, state: LmmState) -> LinearMixedModel:
        return replace(self.model, user_covariance=state.covariance)

    def _fitted(self, state: LmmState, users: UserTable) -> LmmState:
        prior = self.model.covariance(), jnp.asarray(self.settings.prior_users, dtype=float)
        covariance = fitted_covariance(self._model(state), state.sums, users, prior)
        fitted = state._replace(covariance=covariance)
        return fitted._replace(sums=sums_of(self._model(fitted), users))


@partial(jax.jit, static_argnames="read_fn")
def _read(read_fn: ReadFn, belief: GaussianBelief) -> Any:
    return read_fn(belief)


class MttsPolicy(HierarchyPolicy, settings=MTTS):
    """Learn a line of the context for all users, and each user's deviation from it."""

    def with_arm(self) -> "MttsPolicy":
        """Give the new arm its own line.

        Raises:
            UnsupportedError: the design was given for the present arms.
        """
        if self.settings.design is not None:
            raise UnsupportedError(
                f"Expected MTTS without a design; got design for {self.problem.num_arms} arms. "
                "Start a new study with a row for every arm."
            )
        return super().with_arm()
