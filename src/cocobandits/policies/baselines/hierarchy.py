"""Thompson sampling with a Gaussian hierarchy: what MTTS and HierTS have in common.

Both learn a linear mixed model of all users exactly, and play each arm as often as it is best for
this one. They differ in what their means are linear in, which is the model they are built on. The
covariance of users' deviations is given, or is fitted to all users by a step of EM per
reward, starting there (empirical Bayes); what was fitted to rewards that are taken back wears off
with further steps. Owns the state and the contract of a policy around it; the
algebra is in `models.gaussian_hierarchy`.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from cocobandits.checks import check_numbers
from cocobandits.models.base import Belief, Statistics
from cocobandits.models.gaussian_belief import GaussianBelief
from cocobandits.models.gaussian_hierarchy import (
    Sums,
    fitted_covariance,
    prior_sums,
    replaced,
    sums_of,
    user_belief,
)
from cocobandits.models.histories import Change, UserTable
from cocobandits.models.linear_mixed import LinearMixedModel
from cocobandits.policies.base import Arms, History, Policy, Problem, Readings
from cocobandits.types import ArmVector, PossibleContext, RngKey


class HierarchyState(NamedTuple):
    """What all rewards say about the coefficients, and Σ as given or fitted."""

    sums: Sums
    covariance: Float[Array, "arm arm"]


class HierarchyPolicy(Policy[HierarchyState]):
    """Learn one line for all users, and each user's deviation from it.

    `prior_users` is how many users the covariance of the model counts for where it is fitted, and
    None where it is known.
    """

    def __init__(
        self, problem: Problem, model: LinearMixedModel, prior_users: float | None
    ) -> None:
        self.problem = problem
        self.model = model
        self.prior_users = prior_users

    @abstractmethod
    def widened(self, problem: Problem) -> "HierarchyPolicy":
        """Make the same policy for a problem with another arm, whose coefficients come last."""

    def init(self, rng_key: RngKey) -> HierarchyState:
        """Start from the prior of the coefficients."""
        del rng_key
        return HierarchyState(prior_sums(self.model), self.model.covariance())

    def update(
        self, rng_key: RngKey, state: HierarchyState, change: Change
    ) -> tuple[HierarchyState, None]:
        """Replace the user's terms in the sums, and fit the covariance if it is not known."""
        del rng_key
        before, after = change.table.of(change.user), (change.context, change.statistics)
        sums = replaced(self._model(state), state.sums, before, after)
        learned = HierarchyState(sums, state.covariance)
        if self.prior_users is None:
            return learned, None
        return self._fitted(learned, change.applied()), None

    def probabilities(
        self, state: HierarchyState, users: UserTable, user: int, arms: Arms = None
    ) -> ArmVector:
        """Compute P(arm is best) for a user."""
        chosen = None if arms is None else jnp.asarray(arms)
        return _best_probability(self._belief(state, *users.of(user)), chosen)

    def add_arm(
        self, rng_key: RngKey, state: HierarchyState, users: UserTable, history: History
    ) -> tuple["HierarchyPolicy", HierarchyState]:
        """Give the new arm coefficients of its own, of which nothing is known.

        Nobody was given it, so the sums of the others stay whatever deviations have in common. The
        covariance knows of nothing that it has in common with them.

        Raises:
            UnsupportedError: the policy was configured for the present arms.
        """
        del users, history
        policy = self.widened(self.problem.with_arm())
        fresh, size = policy.init(rng_key), self.problem.num_arms
        covariance = fresh.covariance.at[:size, :size].set(state.covariance)
        return policy, HierarchyState(state.sums.widened(fresh.sums), covariance)

    def read(
        self,
        state: HierarchyState,
        users: UserTable,
        context: PossibleContext,
        statistics: Statistics,
        read_fn: Callable[[Belief], Any],
    ) -> Readings:
        """Apply the function to the one belief."""
        del users
        values = _read(read_fn, self._belief(state, context, statistics))
        return Readings(jnp.zeros(1), jax.tree.map(lambda leaf: leaf[None], values))

    def prior(
        self, state: HierarchyState, users: UserTable, context: PossibleContext
    ) -> GaussianBelief:
        """Return N(Φ θ̂, Φ Λ⁻¹ Φᵀ + Σ)."""
        del users
        return self._belief(state, context, Statistics.empty(self.problem.num_arms))

    def _belief(
        self, state: HierarchyState, context: PossibleContext, statistics: Statistics
    ) -> GaussianBelief:
        model, noise = self._model(state), self.problem.known_noise()
        return user_belief(model, state.sums, context, statistics, noise)

    def _model(self, state: HierarchyState) -> LinearMixedModel:
        return replace(self.model, user_covariance=state.covariance)

    def _fitted(self, state: HierarchyState, users: UserTable) -> HierarchyState:
        prior = self.model.covariance(), jnp.asarray(self.prior_users, dtype=float)
        covariance = fitted_covariance(self._model(state), state.sums, users, prior)
        fitted = state._replace(covariance=covariance)
        return fitted._replace(sums=sums_of(self._model(fitted), users))


def check_prior_users(settings: Any) -> None:
    """Refuse a weight that cannot be.

    Raises:
        ConfigurationError: it is neither positive nor None.
    """
    if settings.prior_users is not None:
        remedy = "Use 10, or None to keep the covariance as it is."
        check_numbers(settings, "positive", "prior_users", remedy=remedy)


@jax.jit
def _best_probability(belief: GaussianBelief, arms: Any) -> ArmVector:
    return (belief if arms is None else belief.among(arms)).best_probability()


@partial(jax.jit, static_argnames="read_fn")
def _read(read_fn: Callable[[Belief], Any], belief: GaussianBelief) -> Any:
    return read_fn(belief)
