"""The CoCo policy: a population model, particles over it, and an acquisition (paper, Alg. 1).

Owns how the three meet: a change of a user's statistics is one step of sequential Monte Carlo, and
arm probabilities come from every particle's belief about that user.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cocobandits.inference import smc
from cocobandits.inference.smc import SmcConfig, SmcInfo, SmcState
from cocobandits.numerics.blocks import in_blocks, once
from cocobandits.policies.base import (
    Arms,
    History,
    Policy,
    Problem,
    ReadFn,
    Readings,
    UserData,
    eligibility,
    pick,
)
from cocobandits.policies.coco.acquisition import Acquisition, Rationales, UserReadings
from cocobandits.populations.base import Belief, Hyperparameters, PopulationModel
from cocobandits.populations.history_path import HistoryPath
from cocobandits.types import ArmVector, LogWeights, Particles, PossibleContext, RngKey
from cocobandits.users.statistics import Statistics
from cocobandits.users.table import Change, UserTable


class CocoPolicy(Policy[SmcState]):
    """Learn the population from all users, and choose for each."""

    def __init__(
        self,
        problem: Problem,
        model: PopulationModel,
        acquisition: Acquisition,
        inference: SmcConfig,
        settings: Any = None,
    ) -> None:
        super().__init__(problem, settings)
        self.model = model
        self.acquisition = acquisition
        self.inference = inference

    @property
    def mean_range(self) -> tuple[float, float]:
        """The range of the population model."""
        return self.model.mean_range

    def init(self, rng_key: RngKey) -> SmcState:
        """Draw particles from the prior."""
        return smc.init(rng_key, self.model.num_parameters, self.inference)

    def update(self, rng_key: RngKey, state: SmcState, change: Change) -> tuple[SmcState, SmcInfo]:
        """Move the particles to the posterior of the new statistics, as `Policy.update` says.

        After a removal they are learned again, whatever the state was.
        """
        if change.is_removal:
            return relearn(rng_key, self.model, change.applied(), self.inference)
        return smc.step(rng_key, state, HistoryPath(self.model), change, self.inference)

    def reweigh(
        self, rng_key: RngKey, state: SmcState, change: Change
    ) -> tuple[SmcState, SmcInfo, bool]:
        """Follow the change by weights alone, and report whether moves are due."""
        after, info = smc.reweigh(state, HistoryPath(self.model), change)
        return after, info, change.is_removal or smc.is_due(after, info, self.inference)

    def probabilities(self, state: SmcState, users: UserTable, user: int, arms: Arms) -> ArmVector:
        """Compute the exact marginal probability of each arm."""
        query = self._query(state, users, user, arms)
        return pick(_combine(self.acquisition, self.model, query), arms)

    def rationales(
        self, state: SmcState, users: UserTable, user: int, arms: Arms
    ) -> Rationales | None:
        """Ask the acquisition."""
        query = self._query(state, users, user, arms)
        return pick(_rationales(self.acquisition, self.model, query), arms)

    def add_arm(
        self, rng_key: RngKey, state: SmcState, users: UserTable, history: History
    ) -> tuple["CocoPolicy", SmcState]:
        """Give every particle a new arm from its prior, or relearn from all users.

        Where the wider model has all parameters of this one, what was learned stays as it is. The
        grid of a log-density has not: its population is learned again from all rewards.

        Raises:
            NumericalError: no particle of a new population can explain the rewards.
        """
        policy = self.with_arm()
        if policy.model != self.model.with_arm():
            return policy, relearn(rng_key, policy.model, users, policy.inference)[0]
        particles = self.model.extend(rng_key, state.particles)
        return policy, state._replace(particles=particles)

    def _query(self, state: SmcState, users: UserTable, user: int, arms: Arms) -> "_Query":
        context, statistics = users.of(user)
        points = np.asarray(context)
        if points.ndim == 2 and np.all(points == points[:1]):
            # Known, in a study in which other users have gaps.
            context = jax.device_put(points[0])
        return _Query(state, (context, statistics), eligibility(self.problem.num_arms, arms))

    def read(self, state: SmcState, users: UserTable, data: UserData, read_fn: ReadFn) -> Readings:
        """Apply a function to every particle's belief about a user."""
        return Readings(state.log_weights, _read(self.model, read_fn, state.particles, data))

    def hyperparameters(self, state: SmcState) -> Readings:
        """Ask the model, particle by particle."""
        return Readings(state.log_weights, _hyperparameters(self.model, state.particles))

    def log_evidence(self, state: SmcState) -> float:
        """Return the particle estimate of log p(all rewards)."""
        return float(state.log_evidence)

    def prior(self, state: SmcState, users: UserTable, context: PossibleContext) -> Belief:
        """Average the populations of all particles."""
        return _marginal(self.model, state.particles, state.log_weights, context)


def relearn(
    rng_key: RngKey, model: PopulationModel, users: UserTable, config: SmcConfig
) -> tuple[SmcState, SmcInfo]:
    """Learn a population from its prior and all rewards at once; without any it is the prior.

    Raises:
        NumericalError: no particle can explain the rewards.
    """
    if not np.asarray(users.statistics.count).any():
        # A likelihood in single precision would be one only up to rounding.
        num_particles = config.num_particles
        info = SmcInfo.without_moves(float(num_particles), 0.0, num_particles)
        return smc.init(rng_key, model.num_parameters, config), info
    everything = Change.from_nothing(users)
    return smc.anneal(rng_key, model.num_parameters, HistoryPath(model), everything, config)


class _Query(NamedTuple):
    """A user to decide for, and among which arms."""

    posterior: SmcState
    data: UserData
    is_eligible: Any


@partial(jax.jit, static_argnames="read_fn")
def _read(model: PopulationModel, read_fn: ReadFn, particles: Particles, data: UserData) -> Any:
    return _read_each(model, read_fn, particles, data)


def _read_each(
    model: PopulationModel, read_fn: ReadFn, particles: Particles, data: UserData
) -> Any:
    def read_one(parameters: jax.Array) -> Any:
        return read_fn(once(model.posterior(parameters, *data)))

    # In blocks: all particles' densities at once would fill the memory, and miss the cache.
    return in_blocks(jax.vmap(read_one), particles, model.particles_at_once)


@jax.jit
def _hyperparameters(model: PopulationModel, particles: Particles) -> Hyperparameters:
    return jax.vmap(model.hyperparameters)(particles)


@jax.jit
def _marginal(
    model: PopulationModel, particles: Particles, log_weights: LogWeights, context: PossibleContext
) -> Belief:
    return model.average(particles, log_weights, context, Statistics.empty(model.num_arms))


@jax.jit
def _combine(acquisition: Acquisition, model: PopulationModel, query: _Query) -> ArmVector:
    return acquisition.combine(_readings(acquisition, model, query))


@jax.jit
def _rationales(
    acquisition: Acquisition, model: PopulationModel, query: _Query
) -> Rationales | None:
    return acquisition.rationales(_readings(acquisition, model, query))


def _readings(acquisition: Acquisition, model: PopulationModel, query: _Query) -> UserReadings:
    posterior, data, is_eligible = query

    together = model.average(posterior.particles, posterior.log_weights, *data)
    rewards = acquisition.next_rewards(together)

    def read_one(belief: Belief) -> Any:
        return acquisition.read(belief.among(is_eligible), rewards)

    return UserReadings(
        posterior.log_weights,
        _read_each(model, read_one, posterior.particles, data),
        acquisition.read_together(together.among(is_eligible), rewards),
        jnp.sum(data[1].count),
    )
