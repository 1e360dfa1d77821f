"""Planning under the true population: the limit that policies which learn it are measured against.

The policy knows the population and how often a user is served, and chooses the arm a with the
largest

    E[μ_a] + (n - 1) E[max_b E[μ_b | r_a]]

where n steps are left, the present one included: one reward is learned from, and the best mean is
then played to the end. Nothing is learned across users, and nothing is drawn.
"""

from functools import partial

import jax
import jax.numpy as jnp

from cocobandits.models.gaussian_mixture import GaussianMixtureModel
from cocobandits.models.histories import UserTable
from cocobandits.policies.base import PlainState, Problem
from cocobandits.policies.fixed_prior import FixedPriorPolicy
from cocobandits.types import ArmVector, Scalar

# Values closer than this are a tie: only rounding tells them apart.
_TIE = 1e-9


class PlannerPolicy(FixedPriorPolicy):
    """Condition the true population on each user, and look one reward ahead."""

    model: GaussianMixtureModel

    def __init__(self, problem: Problem, model: GaussianMixtureModel, steps_per_user: int) -> None:
        super().__init__(problem, model)
        self.steps_per_user = steps_per_user

    def probabilities(self, state: PlainState, user: int) -> ArmVector:
        """Give all probability to the best plan; the lowest arm of a tie."""
        steps = jnp.asarray(self.steps_per_user, dtype=float)
        return _best_plan(self.model, steps, state.users, jnp.asarray(user))


@partial(jax.jit, static_argnames="model")
def _best_plan(
    model: GaussianMixtureModel, steps_per_user: Scalar, users: UserTable, user: jax.Array
) -> ArmVector:
    context, statistics = users.of(user)
    belief = model.posterior(jnp.zeros(model.num_parameters), context, statistics)
    steps_after = jnp.maximum(steps_per_user - jnp.sum(statistics.count), 1.0) - 1.0
    value = belief.mean() + steps_after * belief.expected_best_mean_after_one()
    chosen = jnp.argmax(value >= jnp.max(value) - _TIE)
    return jax.nn.one_hot(chosen, model.num_arms, dtype=value.dtype)
