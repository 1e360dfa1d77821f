"""Planning under the true population: the limit that policies which learn it are measured against.

The policy knows the population and how often a user is served, and chooses the arm a with the
largest

    E[μ_a] + (n - 1) E[max_b E[μ_b | r_a]]

where n steps are left, the present one included: one reward is learned from, and the best mean is
then played to the end. Nothing is learned across users, and nothing is drawn.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from cocobandits.models.base import Statistics
from cocobandits.models.gaussian_belief import GaussianBelief
from cocobandits.models.gaussian_mixture import GaussianMixtureModel
from cocobandits.models.histories import UserTable
from cocobandits.policies.base import Arms, Problem
from cocobandits.policies.fixed_prior import FixedPriorPolicy
from cocobandits.types import ArmVector, PossibleContext, Scalar

# Values closer than this are a tie: only rounding tells them apart.
_TIE = 1e-9


class PlannerPolicy(FixedPriorPolicy):
    """Condition the true population on each user, and look one reward ahead."""

    model: GaussianMixtureModel

    def __init__(self, problem: Problem, model: GaussianMixtureModel, steps_per_user: int) -> None:
        super().__init__(problem, model)
        self.steps_per_user = steps_per_user

    def probabilities(
        self, state: None, users: UserTable, user: int, arms: Arms = None
    ) -> ArmVector:
        """Give all probability to the best plan; the lowest arm of a tie."""
        del state
        steps = jnp.asarray(self.steps_per_user, dtype=float)
        chosen = None if arms is None else self.model.selection(arms)
        return _best_plan(self.model, steps, *users.of(jnp.asarray(user)), chosen)


@partial(jax.jit, static_argnames="model")
def _best_plan(
    model: GaussianMixtureModel,
    steps_per_user: Scalar,
    context: PossibleContext,
    statistics: Statistics,
    arms: Any,
) -> ArmVector:
    belief = _dense_posterior(model, context, statistics)
    belief = belief if arms is None else belief.among(arms)
    steps_after = jnp.maximum(steps_per_user - jnp.sum(statistics.count), 1.0) - 1.0
    value = belief.mean() + steps_after * belief.expected_best_mean_after_one()
    chosen = jnp.argmax(value >= jnp.max(value) - _TIE)
    return jax.nn.one_hot(chosen, len(value), dtype=value.dtype)


def _dense_posterior(
    model: GaussianMixtureModel, context: PossibleContext, statistics: Statistics
) -> GaussianBelief:
    nothing = jnp.zeros(model.num_parameters)
    if context.ndim == 1:
        return model.dense_posterior_at(nothing, context, statistics)
    beliefs = jax.vmap(model.dense_posterior_at, (None, 0, None))(nothing, context, statistics)
    evidences = jax.vmap(model.log_evidence_at, (None, 0, None))(nothing, context, statistics)
    return beliefs.blended(jax.nn.log_softmax(evidences))
