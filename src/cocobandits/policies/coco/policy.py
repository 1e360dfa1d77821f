"""The CoCo policy: a population model, particles over it, and an acquisition (paper, Alg. 1).

Owns how the three meet: a change of a user's statistics is one step of sequential Monte Carlo, and
arm probabilities come from every particle's belief about that user.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from cocobandits.errors import UnsupportedError
from cocobandits.inference import smc
from cocobandits.models.base import (
    Belief,
    PopulationModel,
    Statistics,
)
from cocobandits.models.blocks import in_blocks
from cocobandits.models.histories import Change, HistoryPath, UserTable
from cocobandits.policies.base import Arms, History, Policy, Problem, Readings
from cocobandits.policies.coco.acquisition import Acquisition, Evidence, Motives
from cocobandits.policies.coco.relearning import relearn
from cocobandits.types import ArmVector, LogWeights, Particles, PossibleContext, RngKey


class CocoPolicy(Policy[smc.SmcState]):
    """Learn the population from all users, and choose for each."""

    def __init__(
        self,
        problem: Problem,
        model: PopulationModel,
        acquisition: Acquisition[Any, Any],
        inference: smc.SmcConfig,
        rebuild: Callable[[Problem], "CocoPolicy"] | None = None,
    ) -> None:
        self.problem = problem
        self._rebuild = rebuild
        self.model = model
        self.acquisition = acquisition
        self.inference = inference

    @property
    def mean_range(self) -> tuple[float, float]:
        """The range of the population model."""
        return self.model.mean_range

    def init(self, rng_key: RngKey) -> smc.SmcState:
        """Draw particles from the prior."""
        return smc.init(rng_key, self.model.num_parameters, self.inference)

    def update(
        self, rng_key: RngKey, state: smc.SmcState, change: Change
    ) -> tuple[smc.SmcState, smc.SmcInfo]:
        """Bring the particles to the posterior that the new statistics imply.

        Raises:
            NumericalError: no particle can explain the change.
        """
        return smc.step(rng_key, state, HistoryPath(self.model), change, self.inference)

    def reweigh(
        self, rng_key: RngKey, state: smc.SmcState, change: Change
    ) -> tuple[smc.SmcState, smc.SmcInfo, bool]:
        """Follow the change by weights alone, and report whether moves are due.

        Raises:
            NumericalError: no particle can explain the change.
        """
        del rng_key
        after, info = smc.reweigh(state, HistoryPath(self.model), change)
        return after, info, smc.is_due(after, info, self.inference)

    def probabilities(
        self, state: smc.SmcState, users: UserTable, user: int, arms: Arms = None
    ) -> ArmVector:
        """Compute the exact marginal probability of each arm."""
        return _combine(self.acquisition, self.model, self._case(state, users, user, arms))

    def motives(
        self, state: smc.SmcState, users: UserTable, user: int, arms: Arms = None
    ) -> Motives | None:
        """Ask the acquisition."""
        return _motives(self.acquisition, self.model, self._case(state, users, user, arms))

    def add_arm(
        self, rng_key: RngKey, state: smc.SmcState, users: UserTable, history: History
    ) -> tuple["CocoPolicy", smc.SmcState]:
        """Give every particle a new arm from its prior, or relearn from all users.

        Where the wider model has all parameters of this one, what was learned stays as it is. The
        grid of a log-density has not: its population is learned again from all rewards.

        Raises:
            UnsupportedError: the policy was not built by name.
            NumericalError: no particle of a new population can explain a user.
        """
        del history
        if self._rebuild is None:
            raise UnsupportedError(
                "Expected a policy that was built by name; got one that was put together by hand. "
                "Build it with cocobandits.policies.registry.build_policy."
            )
        policy = self._rebuild(self.problem.with_arm())
        if policy.model != self.model.with_arm():
            return policy, relearn(rng_key, policy.model, users, policy.inference)
        particles = self.model.widened(rng_key, state.particles)
        return policy, state._replace(particles=particles)

    def _case(self, state: smc.SmcState, users: UserTable, user: int, arms: Arms) -> "_Case":
        chosen = None if arms is None else self.model.selection(arms)
        context, statistics = users.of(user)
        return _Case(state, context, statistics, chosen)

    def read(
        self,
        state: smc.SmcState,
        users: UserTable,
        context: PossibleContext,
        statistics: Statistics,
        read_fn: Callable[[Belief], Any],
    ) -> Readings:
        """Apply a function to every particle's belief about a user."""
        del users
        values = _read(self.model, read_fn, state.particles, context, statistics)
        return Readings(state.log_weights, values)

    def hyperparameters(self, state: smc.SmcState) -> Readings:
        """Ask the model, particle by particle."""
        return Readings(state.log_weights, jax.vmap(self.model.hyperparameters)(state.particles))

    def log_evidence(self, state: smc.SmcState) -> float:
        """Return the particle estimate of log p(all rewards)."""
        return float(state.log_evidence)

    def prior(self, state: smc.SmcState, users: UserTable, context: PossibleContext) -> Belief:
        """Average the populations of all particles."""
        del users
        return _marginal(self.model, state.particles, state.log_weights, context)


class _Case(NamedTuple):
    """A user whose turn it is, and among which arms to choose; None for all."""

    posterior: smc.SmcState
    context: PossibleContext
    statistics: Statistics
    arms: Any


@partial(jax.jit, static_argnames=("model", "read_fn"))
def _read(
    model: PopulationModel,
    read_fn: Callable[[Belief], Any],
    particles: Particles,
    context: PossibleContext,
    statistics: Statistics,
) -> Any:
    def read_one(parameters: jax.Array) -> Any:
        return read_fn(model.posterior(parameters, context, statistics))

    # In blocks: all particles' densities at once would fill the memory, and miss the cache.
    return in_blocks(jax.vmap(read_one), particles, model.particles_at_once)


@partial(jax.jit, static_argnames="model")
def _marginal(
    model: PopulationModel, particles: Particles, log_weights: LogWeights, context: PossibleContext
) -> Belief:
    return model.average(particles, log_weights, context, Statistics.empty(model.num_arms))


# By acquisition: methods of equal objects are not equal, and would be compiled for every study.
@partial(jax.jit, static_argnames=("acquisition", "model"))
def _combine(acquisition: Acquisition[Any, Any], model: PopulationModel, case: _Case) -> ArmVector:
    return acquisition.combine(_evidence(acquisition, model, case))


@partial(jax.jit, static_argnames=("acquisition", "model"))
def _motives(
    acquisition: Acquisition[Any, Any], model: PopulationModel, case: _Case
) -> Motives | None:
    return acquisition.motives(_evidence(acquisition, model, case))


def _evidence(acquisition: Acquisition[Any, Any], model: PopulationModel, case: _Case) -> Evidence:
    posterior, context, statistics, arms = case

    def among(belief: Belief) -> Belief:
        return belief if arms is None else belief.among(arms)

    def read_one(belief: Belief) -> Any:
        return acquisition.read(among(belief))

    together = model.average(posterior.particles, posterior.log_weights, context, statistics)
    return Evidence(
        posterior.log_weights,
        _read(model, read_one, posterior.particles, context, statistics),
        acquisition.read_together(among(together)),
        jnp.sum(statistics.count),
    )
