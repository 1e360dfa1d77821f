"""Thompson sampling under a population that is given, not learned.

With the flat population it is the paper's Ind-TS: each user is served from that user's own rewards.
With the true population it is OraclePrior-TS, against which multi-task regret is measured.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from cocobandits.errors import UnsupportedError
from cocobandits.models.base import Belief, PopulationModel, Statistics
from cocobandits.models.histories import UserTable
from cocobandits.policies.base import Arms, PlainPolicy, Problem, Readings
from cocobandits.types import ArmVector, PossibleContext


class FixedPriorPolicy(PlainPolicy):
    """Condition a fixed population on each user, and play each arm as often as it is best."""

    def __init__(self, problem: Problem, model: PopulationModel) -> None:
        super().__init__(problem)
        self.model = model

    @property
    def mean_range(self) -> tuple[float, float]:
        """The range of the population model."""
        return self.model.mean_range

    def probabilities(
        self, state: None, users: UserTable, user: int, arms: Arms = None
    ) -> ArmVector:
        """Compute P(arm is best) for a user."""
        del state
        chosen = None if arms is None else self.model.selection(arms)
        return _best_probability(self.model, *users.of(jnp.asarray(user)), chosen)

    def widened(self, problem: Problem) -> "FixedPriorPolicy":
        """Widen the model.

        Raises:
            UnsupportedError: its population was given for the present arms.
        """
        wider = self.model.with_arm()
        if wider is None:
            raise UnsupportedError(
                "Expected a population that another arm can be added to; got one that is given for "
                f"{problem.num_arms - 1} arms. Start a new study with a population of all arms."
            )
        return FixedPriorPolicy(problem, wider)

    def read(
        self,
        state: None,
        users: UserTable,
        context: PossibleContext,
        statistics: Statistics,
        read_fn: Callable[[Belief], Any],
    ) -> Readings:
        """Apply the function to the one belief."""
        del state, users
        return Readings(jnp.zeros(1), _read(self.model, read_fn, context, statistics))

    def prior(self, state: None, users: UserTable, context: PossibleContext) -> Belief:
        """Return the population itself."""
        del state, users
        return _marginal(self.model, context)


@partial(jax.jit, static_argnames="model")
def _marginal(model: PopulationModel, context: PossibleContext) -> Belief:
    nothing = Statistics.empty(model.num_arms)
    return model.posterior(jnp.zeros(model.num_parameters), context, nothing)


@partial(jax.jit, static_argnames="model")
def _best_probability(
    model: PopulationModel, context: PossibleContext, statistics: Statistics, arms: Any
) -> ArmVector:
    belief = model.posterior(jnp.zeros(model.num_parameters), context, statistics)
    return (belief if arms is None else belief.among(arms)).best_probability()


@partial(jax.jit, static_argnames=("model", "read_fn"))
def _read(
    model: PopulationModel,
    read_fn: Callable[[Belief], Any],
    context: PossibleContext,
    statistics: Statistics,
) -> Any:
    belief = model.posterior(jnp.zeros(model.num_parameters), context, statistics)
    return jax.tree.map(lambda leaf: leaf[None], read_fn(belief))
