"""The paper's procedure as it is written (App. "SMC"): oracle of tests and reference for speed.

A particle ξ has prior N(0, I). Its log-density is f = Φ ξ on all nodes at once, where Φ is one
dense matrix, nodes × modes, of √λ_m · amplitude · eigenvector, with the basis of the library's
model. Every context node has its own softmax over the cells of the arm grid, and a user counts at
the nearest context node. The evidence of a user is summed over all cells,

    log Σ_cells P(cell | x) ∏_a L_a(cell_a)

with the library's likelihood of each arm, averaged over a cell.

For every observation particles are reweighted by the ratio of the user's evidences. They are
resampled when ESS < N/2, and at every fifth observation. Then all particles move: five Langevin
rounds with the paper's step size and a Metropolis-Hastings test, on prior × likelihood of all
users, so that nothing is counted twice. That takes six evaluations of value and gradient, the
fewest that this reading allows.

It is plain, not slow on purpose: particles go through in blocks of 20, the fastest of six variants
tried, and the table of users has a row for every user there will be, so that everything is compiled
once. `tests/benchmarks/test_literal.py` compares posterior and gradients with the library's.
"""

import itertools
from collections.abc import Iterable, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from cocobandits.inference import weights
from cocobandits.inference.resampling import systematic
from cocobandits.policies.coco.acquisition import UserReadings
from cocobandits.policies.coco.gids import GlobalInformationDirectedSampling
from cocobandits.populations.log_density import LogDensityModel
from cocobandits.populations.truncated_normal import interval_log_likelihood
from cocobandits.users.statistics import Statistics

STEP_SIZE = 0.05
NUM_ROUNDS = 5
RESAMPLE_EVERY = 5
_CHUNK = 20

Particles = Float[Array, "particle mode"]
PerParticle = Float[Array, " particle"]
Basis = Float[Array, "context cell mode"]


class Users(NamedTuple):
    """A row per user for the likelihood; rows without rewards count nothing."""

    likelihoods: Float[Array, "user cell"]
    log_scales: Float[Array, " user"]
    nodes: Int[Array, " user"]
    has_rewards: Float[Array, " user"]

    @classmethod
    def empty(cls, capacity: int, num_cells: int) -> "Users":
        """Make room for a number of users."""
        blank = jnp.zeros(capacity)
        return cls(jnp.ones((capacity, num_cells)), blank, blank.astype(int), blank)


def dense_basis(model: LogDensityModel) -> Basis:
    """Evaluate every mode on every node, by unit vectors."""
    columns = jax.vmap(jax.vmap(model.log_density, (0, None)), (None, 0))
    values = columns(jnp.eye(model.num_parameters), jnp.asarray(context_nodes(model)))
    return jnp.moveaxis(values.reshape(*values.shape[:2], -1), 1, 2)


def context_nodes(model: LogDensityModel) -> "np.ndarray[Any, np.dtype[np.float64]]":
    """List all nodes of the context grid, one per row."""
    axes = [np.asarray(axis.nodes) for axis in model.config.context_axes]
    return np.array(list(itertools.product(*axes)), dtype=float).reshape(-1, len(axes))


def log_likelihood(particle: Float[Array, " mode"], basis: Basis, users: Users) -> Float[Array, ""]:
    """Sum the log-evidences of all users under one particle."""
    log_density = basis @ particle
    peaks = jax.lax.stop_gradient(jnp.max(log_density, axis=1, keepdims=True))
    densities = jnp.exp(log_density - peaks)
    rows = jnp.arange(len(users.nodes))
    explained = (densities @ users.likelihoods.T)[users.nodes, rows]
    total = jnp.sum(densities, axis=1)[users.nodes]
    return jnp.sum(users.has_rewards * (jnp.log(explained) - jnp.log(total) + users.log_scales))


@jax.jit
def value_and_gradient(
    particles: Particles, basis: Basis, users: Users
) -> tuple[PerParticle, Particles]:
    """Differentiate the log-likelihood of every particle automatically, a block at a time."""
    size = max(size for size in range(1, _CHUNK + 1) if len(particles) % size == 0)
    block = jax.vmap(jax.value_and_grad(log_likelihood), in_axes=(0, None, None))
    blocks = particles.reshape(-1, size, particles.shape[1])
    values, gradients = jax.lax.map(lambda each: block(each, basis, users), blocks)
    return values.reshape(-1), gradients.reshape(particles.shape)


@partial(jax.jit, static_argnames="model")
def _write(model: LogDensityModel, users: Users, user: int, statistics: Statistics) -> Users:
    """Multiply the arms' likelihoods to one value per cell, and keep its peak apart."""
    config = model.config
    logs = interval_log_likelihood(statistics, config.reward_noise, config.arm_axis.edges)
    joint = reduce(jnp.add.outer, logs).reshape(-1)
    peak = jnp.max(joint)
    return users._replace(
        likelihoods=users.likelihoods.at[user].set(jnp.exp(joint - peak)),
        log_scales=users.log_scales.at[user].set(peak),
        has_rewards=users.has_rewards.at[user].set(jnp.any(statistics.count > 0).astype(float)),
    )


@jax.jit
def _increments(
    particles: Particles, basis: Basis, before: Users, after: Users, user: int
) -> PerParticle:
    """Compute the ratio of one user's evidences, in logarithms, under every particle."""
    log_density = particles @ basis[after.nodes[user]].T
    densities = jnp.exp(log_density - jnp.max(log_density, axis=1, keepdims=True))

    def explained(users: Users) -> PerParticle:
        return jnp.log(densities @ users.likelihoods[user]) + users.log_scales[user]

    return explained(after) - explained(before)


@jax.jit
def _move(
    rng_key: Array, particles: Particles, basis: Basis, users: Users
) -> tuple[Particles, Float[Array, ""]]:
    """Make five Langevin rounds; return the particles and the mean acceptance rate."""

    def target(points: Particles) -> tuple[PerParticle, Particles]:
        value, gradient = value_and_gradient(points, basis, users)
        return value - 0.5 * jnp.sum(points**2, axis=1), gradient - points

    def log_proposal(there: Particles, here: Particles, gradient: Particles) -> PerParticle:
        residual = there - here - STEP_SIZE / 2 * gradient
        return -jnp.sum(residual**2, axis=1) / (2 * STEP_SIZE)

    def make_round(state: Any, key: Array) -> Any:
        here, value, gradient = state
        noise_key, accept_key = jax.random.split(key)
        noise = jax.random.normal(noise_key, here.shape)
        there = here + STEP_SIZE / 2 * gradient + np.sqrt(STEP_SIZE) * noise
        new_value, new_gradient = target(there)
        log_ratio = new_value - value
        log_ratio += log_proposal(here, there, new_gradient) - log_proposal(there, here, gradient)
        is_accepted = jnp.log(jax.random.uniform(accept_key, value.shape)) < log_ratio
        new, old = (there, new_value, new_gradient), (here, value, gradient)
        is_new = (is_accepted[:, None], is_accepted, is_accepted[:, None])
        return tuple(map(jnp.where, is_new, new, old)), jnp.mean(is_accepted, dtype=float)

    start = (particles, *target(particles))
    (last, _, _), rates = jax.lax.scan(make_round, start, jax.random.split(rng_key, NUM_ROUNDS))
    return last, jnp.mean(rates)


@partial(jax.jit, static_argnames="model")
def _decide(
    model: LogDensityModel,
    particles: Particles,
    log_weights: PerParticle,
    context: Float[Array, " feature"],
    statistics: Statistics,
) -> Float[Array, " arm"]:
    """Weigh regret against information under every particle, and average (paper's gids)."""
    acquisition = GlobalInformationDirectedSampling(model.reward_grid)

    def read(particle: Float[Array, " mode"]) -> Any:
        belief = model.posterior(particle, context, statistics)
        return acquisition.read(belief, model.reward_grid.values())

    each, num_rewards = jax.vmap(read)(particles), jnp.sum(statistics.count)
    return acquisition.combine(UserReadings(log_weights, each, None, num_rewards))


class LiteralPosterior:
    """Weighted particles over the population, moved after every observation.

    The model has the basis, the grid and the noise; the capacity is the final number of users.
    """

    def __init__(
        self, model: LogDensityModel, capacity: int, seed: int, num_particles: int = 200
    ) -> None:
        self.model = model
        self.basis = dense_basis(model)
        self.users = Users.empty(capacity, self.basis.shape[1])
        self.statistics: list[Statistics] = []
        self.num_observations = 0
        self._nodes = context_nodes(model)
        self._key = jax.random.key(seed)
        shape = (num_particles, model.num_parameters)
        self.particles: Particles = jax.random.normal(self._next_key(), shape)
        self.log_weights: PerParticle = weights.uniform(num_particles)

    def enrol(self, context: Sequence[float]) -> None:
        """Add a user at the nearest context node."""
        distances = np.sum((self._nodes - np.asarray(context)[None, :]) ** 2, axis=1)
        nodes = self.users.nodes.at[len(self.statistics)].set(int(np.argmin(distances)))
        self.users = self.users._replace(nodes=nodes)
        self.statistics.append(Statistics.empty(self.model.num_arms))

    def record(self, user: int, statistics: Statistics) -> None:
        """Replace a user's statistics, without learning from them."""
        self.users = _write(self.model, self.users, user, statistics)
        self.statistics[user] = statistics

    def update(self, user: int, statistics: Statistics) -> tuple[bool, float]:
        """Reweight, resample if it is due, move; return whether it was, and the acceptance."""
        before = self.users
        self.record(user, statistics)
        increments = _increments(self.particles, self.basis, before, self.users, user)
        self.log_weights = weights.normalise(self.log_weights + increments)
        ess = float(weights.effective_sample_size(self.log_weights))
        self.num_observations += 1
        is_due = self.num_observations % RESAMPLE_EVERY == 0 or ess < len(self.particles) / 2
        if is_due:
            self.particles = self.particles[systematic(self._next_key(), self.log_weights)]
            self.log_weights = weights.uniform(len(self.particles))
        self.particles, rate = _move(self._next_key(), self.particles, self.basis, self.users)
        return is_due, float(rate)

    def probabilities(self, user: int) -> "np.ndarray[Any, np.dtype[np.float64]]":
        """Compute the probability of each arm for a user, by the paper's gids."""
        context = jnp.asarray(self._nodes[int(self.users.nodes[user])])
        weighted = (self.particles, self.log_weights)
        return np.asarray(_decide(self.model, *weighted, context, self.statistics[user]))

    def replay(self, history: Iterable[tuple[int, Sequence[float], int, float]]) -> None:
        """Decide and learn along given users, contexts, arms and rewards."""
        for user, context, arm, reward in history:
            if user == len(self.statistics):
                self.enrol(context)
            self.probabilities(user)
            self.update(user, self.statistics[user].add(arm, reward))
        self.particles.block_until_ready()

    def _next_key(self) -> Array:
        self._key, key = jax.random.split(self._key)
        return key
