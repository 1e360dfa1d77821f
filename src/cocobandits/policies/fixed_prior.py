"""Thompson sampling under a population that is given, not learned.

With the flat population it is the paper's Ind-TS: each user is served from that user's own rewards.
With the true population it is OraclePrior-TS, against which multi-task regret is measured.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from cocobandits.models.base import Belief, PopulationModel, Statistics
from cocobandits.models.histories import UserTable
from cocobandits.policies.base import PlainPolicy, PlainState, Problem, Readings
from cocobandits.types import ArmVector, Context


class FixedPriorPolicy(PlainPolicy):
    """Condition a fixed population on each user, and play each arm as often as it is best."""

    def __init__(self, problem: Problem, model: PopulationModel) -> None:
        super().__init__(problem)
        self.model = model

    @property
    def mean_range(self) -> tuple[float, float]:
        """The range of the population model."""
        return self.model.mean_range

    def probabilities(self, state: PlainState, user: int) -> ArmVector:
        """Compute P(arm is best) for a user."""
        return _best_probability(self.model, state.users, jnp.asarray(user))

    def read(
        self,
        state: PlainState,
        context: Context,
        statistics: Statistics,
        read_fn: Callable[[Belief], Any],
    ) -> Readings:
        """Read off the one belief there is."""
        del state
        return Readings(jnp.zeros(1), _read(self.model, read_fn, context, statistics))

    def prior(self, state: PlainState, context: Context) -> Belief:
        """Return the population itself."""
        del state
        return _marginal(self.model, context)


@partial(jax.jit, static_argnames="model")
def _marginal(model: PopulationModel, context: Context) -> Belief:
    return model.marginal(jnp.zeros((1, model.num_parameters)), jnp.zeros(1), context)


@partial(jax.jit, static_argnames="model")
def _best_probability(model: PopulationModel, users: UserTable, user: jax.Array) -> ArmVector:
    return model.posterior(jnp.zeros(model.num_parameters), *users.of(user)).best_probability()


@partial(jax.jit, static_argnames=("model", "read_fn"))
def _read(
    model: PopulationModel,
    read_fn: Callable[[Belief], Any],
    context: Context,
    statistics: Statistics,
) -> Any:
    belief = model.posterior(jnp.zeros(model.num_parameters), context, statistics)
    return jax.tree.map(lambda leaf: leaf[None], read_fn(belief))
