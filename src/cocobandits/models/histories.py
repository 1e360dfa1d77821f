"""Many users at once: the likelihood of a whole population's histories, particle by particle.

Owns the table of users and the sum of log-evidences over it, with its gradient. A change of one
user's statistics is a path from the old likelihood (temperature 0) to the new one (temperature 1).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Bool, Float, Int

from cocobandits.models.base import PopulationModel, Statistics
from cocobandits.types import Context, Matrix, Particles, PerParticle, RngKey, Scalar

T = TypeVar("T")
Sums = tuple[PerParticle, Particles]

_FIRST_CAPACITY = 256
_GROWTH = 4
# Particles handled together: enough to share what does not depend on the particle, few enough that
# their tensors stay in the processor's cache.
_CHUNK = 20


class UserTable(NamedTuple):
    """Contexts and statistics of all users, padded so that few shapes are ever compiled."""

    contexts: Float[Array, "user feature"]
    statistics: Statistics  # each field: user × arm
    num_users: Int[Array, ""]

    @classmethod
    def empty(cls, num_features: int, num_arms: int) -> "UserTable":
        """Make a table without users."""
        blank = jnp.zeros((_FIRST_CAPACITY, num_arms))
        return cls(
            jnp.zeros((_FIRST_CAPACITY, num_features)),
            Statistics(blank, blank, blank),
            jnp.zeros((), dtype=int),
        )

    def append(self, context: Context) -> "UserTable":
        """Add a user without rewards, growing the table when it is full."""
        user = int(self.num_users)
        capacity = len(self.contexts)
        table = self._grow(_GROWTH * capacity) if user == capacity else self
        return _append(table, context)

    @jax.jit
    def of(self, user: Int[ArrayLike, ""]) -> tuple[Context, Statistics]:
        """Read one user's context and statistics."""
        return self.contexts[user], Statistics(*(field[user] for field in self.statistics))

    @jax.jit
    def replace(self, user: Int[ArrayLike, ""], statistics: Statistics) -> "UserTable":
        """Write one user's statistics."""
        fields = zip(self.statistics, statistics, strict=True)
        return self._replace(statistics=Statistics(*(old.at[user].set(new) for old, new in fields)))

    def _grow(self, capacity: int) -> "UserTable":
        def pad(rows: Float[Array, "user column"]) -> Float[Array, "larger column"]:
            return jnp.pad(rows, ((0, capacity - len(rows)), (0, 0)))

        return UserTable(pad(self.contexts), Statistics(*map(pad, self.statistics)), self.num_users)


@jax.jit
def _append(table: UserTable, context: Context) -> UserTable:
    return table._replace(
        contexts=table.contexts.at[table.num_users].set(context), num_users=table.num_users + 1
    )


class Change(NamedTuple):
    """The table as it was, and what becomes of one user's statistics."""

    table: UserTable
    user: Int[Array, ""]
    statistics: Statistics

    def row(self, row: Int[Array, ""], temperature: Scalar) -> tuple[Scalar, Context, Statistics]:
        """Read one term of the tempered likelihood: its weight, context and statistics.

        The rows are the users as they were, then the changed user as it will be.
        """
        is_new = row == self.table.num_users
        user = jnp.where(is_new, self.user, row)
        context, old = self.table.of(user)
        rewards = jax.tree.map(partial(jnp.where, is_new), self.statistics, old)
        faded = jnp.where(user == self.user, 1.0 - temperature, 1.0)
        return jnp.where(is_new, temperature, faded), context, rewards


@dataclass(frozen=True)
class HistoryPath:
    """The likelihood along a change: old^(1 - temperature) · new^temperature, for one model."""

    model: PopulationModel

    def increment(self, particles: Particles, change: Change) -> PerParticle:
        """Compute the log-likelihood at temperature 1 minus that at temperature 0."""
        context, old = change.table.of(change.user)
        evidence = jax.vmap(self.model.log_evidence, in_axes=(0, None, None))
        return evidence(particles, context, change.statistics) - evidence(particles, context, old)

    def log_likelihood_and_gradient(
        self, particles: Particles, change: Change, temperature: Scalar
    ) -> tuple[PerParticle, Particles]:
        """Sum the log-evidences of all users, and their gradients."""

        def add(sums: Sums, weight: Scalar, value: PerParticle, gradient: Particles) -> Sums:
            return sums[0] + weight * value, sums[1] + weight * gradient

        def sum_block(block: Particles) -> tuple[PerParticle, Particles]:
            sums = jnp.zeros(len(block)), jnp.zeros_like(block)
            return self._sum_over_users(block, change, temperature, add, sums)

        values, gradients = jax.lax.map(sum_block, _blocks(particles))
        return values.reshape(-1), gradients.reshape(particles.shape)

    def information(self, particles: Particles, change: Change, temperature: Scalar) -> Matrix:
        """Sum the outer products of all users' gradients, averaged over particles.

        This estimates the Fisher information, what the users' rewards say about each parameter,
        without second derivatives.
        """

        def add(sums: Matrix, weight: Scalar, value: PerParticle, gradient: Particles) -> Matrix:
            del value
            return sums + weight * gradient.T @ gradient

        def sum_block(block: Particles) -> Matrix:
            sums = jnp.zeros((block.shape[1], block.shape[1]))
            return self._sum_over_users(block, change, temperature, add, sums)

        return jnp.sum(jax.lax.map(sum_block, _blocks(particles)), axis=0) / len(particles)

    def interweave(self, rng_key: RngKey, particles: Particles) -> Particles:
        """Move every particle without touching any likelihood, if the model knows how."""
        keys = jax.random.split(rng_key, len(particles))
        return jax.vmap(self.model.interweave)(keys, particles)

    def _sum_over_users(
        self,
        particles: Particles,
        change: Change,
        temperature: Scalar,
        add: Callable[[T, Scalar, PerParticle, Particles], T],
        sums: T,
    ) -> T:
        evidence = jax.vmap(self.model.log_evidence_and_gradient, in_axes=(0, None, None))

        def add_row(row: Int[Array, ""], sums: T) -> T:
            weight, context, rewards = change.row(row, temperature)
            return jax.lax.cond(
                _contributes(weight, rewards),
                lambda: add(sums, weight, *evidence(particles, context, rewards)),
                lambda: sums,
            )

        return jax.lax.fori_loop(0, change.table.num_users + 1, add_row, sums)


def _blocks(particles: Particles) -> Float[Array, "block member parameter"]:
    return particles.reshape(-1, _chunk_size(len(particles)), particles.shape[1])


def _contributes(weight: Scalar, statistics: Statistics) -> Bool[Array, ""]:
    # A user without rewards has evidence one under every particle.
    return (weight > 0) & (jnp.sum(statistics.count) > 0)


def _chunk_size(num_particles: int) -> int:
    return max(size for size in range(1, _CHUNK + 1) if num_particles % size == 0)
