"""The CoCo policy: a population model, particles over it, and an acquisition (paper, Alg. 1).

Owns how the three meet: a change of a user's statistics is one step of sequential Monte Carlo, and
arm probabilities come from every particle's belief about that user.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from cocobandits.inference import smc
from cocobandits.models.base import (
    Belief,
    PopulationModel,
    Statistics,
)
from cocobandits.models.blocks import in_blocks
from cocobandits.models.histories import Change, HistoryPath, UserTable
from cocobandits.policies.acquisitions.base import Acquisition, Motives
from cocobandits.policies.base import Policy, Problem, Readings
from cocobandits.types import ArmVector, Context, LogWeights, Particles, RngKey


class CocoState(NamedTuple):
    """All users, and the particles that explain them."""

    users: UserTable
    posterior: smc.SmcState


class CocoPolicy(Policy[CocoState]):
    """Learn the population from all users, and choose for each."""

    def __init__(
        self,
        problem: Problem,
        model: PopulationModel,
        acquisition: Acquisition[Any],
        inference: smc.SmcConfig,
    ) -> None:
        self.problem = problem
        self.model = model
        self.acquisition = acquisition
        self.inference = inference

    @property
    def mean_range(self) -> tuple[float, float]:
        """The range of the population model."""
        return self.model.mean_range

    def init(self, rng_key: RngKey) -> CocoState:
        """Draw particles from the prior."""
        users = UserTable.empty(len(self.problem.features), self.problem.num_arms)
        return CocoState(users, smc.init(rng_key, self.model.num_parameters, self.inference))

    def users(self, state: CocoState) -> UserTable:
        """Read the users."""
        return state.users

    def enrol(self, state: CocoState, context: Context) -> CocoState:
        """Add a row; a context alone says nothing about the population of arm means."""
        return state._replace(users=state.users.append(context))

    def update(
        self, rng_key: RngKey, state: CocoState, user: int, statistics: Statistics
    ) -> tuple[CocoState, smc.SmcInfo]:
        """Bring the particles to the posterior that the new statistics imply.

        Raises:
            NumericalError: no particle can explain the change.
        """
        change = Change(state.users, jnp.asarray(user), statistics)
        path = HistoryPath(self.model)
        posterior, info = smc.step(rng_key, state.posterior, path, change, self.inference)
        return CocoState(state.users.replace(user, statistics), posterior), info

    def reweigh(
        self, rng_key: RngKey, state: CocoState, user: int, statistics: Statistics
    ) -> tuple[CocoState, smc.SmcInfo, bool]:
        """Follow the new statistics by weights alone, and tell whether moves are due.

        Raises:
            NumericalError: no particle can explain the change.
        """
        del rng_key
        change = Change(state.users, jnp.asarray(user), statistics)
        posterior, info = smc.reweigh(state.posterior, HistoryPath(self.model), change)
        after = CocoState(state.users.replace(user, statistics), posterior)
        return after, info, smc.is_due(posterior, info, self.inference)

    def probabilities(self, state: CocoState, user: int) -> ArmVector:
        """Compute the exact marginal probability of each arm."""
        return _combine(self.acquisition, self.model, state.posterior, *state.users.of(user))

    def motives(self, state: CocoState, user: int) -> Motives | None:
        """Ask the acquisition."""
        return _motives(self.acquisition, self.model, state.posterior, *state.users.of(user))

    def read(
        self,
        state: CocoState,
        context: Context,
        statistics: Statistics,
        read_fn: Callable[[Belief], Any],
    ) -> Readings:
        """Read something off every particle's belief about a user."""
        values = _read(self.model, read_fn, state.posterior.particles, context, statistics)
        return Readings(state.posterior.log_weights, values)

    def hyperparameters(self, state: CocoState) -> Readings:
        """Ask the model, particle by particle."""
        posterior = state.posterior
        return Readings(
            posterior.log_weights, jax.vmap(self.model.hyperparameters)(posterior.particles)
        )

    def prior(self, state: CocoState, context: Context) -> Belief:
        """Average the populations of all particles."""
        posterior = state.posterior
        return _marginal(self.model, posterior.particles, posterior.log_weights, context)


@partial(jax.jit, static_argnames=("model", "read_fn"))
def _read(
    model: PopulationModel,
    read_fn: Callable[[Belief], Any],
    particles: Particles,
    context: Context,
    statistics: Statistics,
) -> Any:
    def read_one(parameters: jax.Array) -> Any:
        return read_fn(model.posterior(parameters, context, statistics))

    # In blocks: all particles' densities at once would fill the memory, and miss the cache.
    return in_blocks(jax.vmap(read_one), particles, model.particles_at_once)


@partial(jax.jit, static_argnames="model")
def _marginal(
    model: PopulationModel, particles: Particles, log_weights: LogWeights, context: Context
) -> Belief:
    return model.marginal(particles, log_weights, context)


# By acquisition: methods of equal objects are not equal, and would be compiled for every study.
@partial(jax.jit, static_argnames=("acquisition", "model"))
def _combine(
    acquisition: Acquisition[Any],
    model: PopulationModel,
    posterior: smc.SmcState,
    context: Context,
    statistics: Statistics,
) -> ArmVector:
    readings = _read(model, acquisition.read, posterior.particles, context, statistics)
    return acquisition.combine(posterior.log_weights, readings, jnp.sum(statistics.count))


@partial(jax.jit, static_argnames=("acquisition", "model"))
def _motives(
    acquisition: Acquisition[Any],
    model: PopulationModel,
    posterior: smc.SmcState,
    context: Context,
    statistics: Statistics,
) -> Motives | None:
    readings = _read(model, acquisition.read, posterior.particles, context, statistics)
    return acquisition.motives(posterior.log_weights, readings, jnp.sum(statistics.count))
