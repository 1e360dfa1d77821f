"""Many users at once: the likelihood of a whole population's histories, particle by particle.

Owns the table of users and the sum of log-evidences over it, with its gradient. A change of one
user's statistics is a path from the old likelihood (temperature 0) to the new one (temperature 1).
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, ArrayLike, Float, Int

from cocobandits.models.base import (
    PopulationModel,
    Statistics,
    UserRows,
    sum_over_rows,
)
from cocobandits.models.blocks import BLOCK_SIZE, block_size
from cocobandits.types import Context, Matrix, Particles, PerParticle, RngKey, Scalar

_FIRST_CAPACITY = 256
_GROWTH = 4


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

    def rows(self, temperature: Scalar) -> UserRows:
        """List the terms of the tempered likelihood.

        The rows are the users as they were, the changed one fading, then that one as it will be.
        """
        table, end = self.table, self.table.num_users
        rows = jnp.arange(len(table.contexts) + 1)
        is_new = rows == end
        users = jnp.where(is_new, self.user, rows)
        faded = jnp.where(users == self.user, 1.0 - temperature, 1.0 * (rows < end))
        return UserRows(
            jnp.where(is_new, temperature, faded),
            table.contexts[users],
            Statistics(
                *(
                    jnp.where(is_new[:, None], new[None, :], old[users])
                    for new, old in zip(self.statistics, table.statistics, strict=True)
                )
            ),
            end + 1,
        )


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
        return self.model.log_likelihood_and_gradient(particles, change.rows(temperature))

    def information(self, particles: Particles, change: Change, temperature: Scalar) -> Matrix:
        """Sum the outer products of all users' gradients, averaged over particles.

        At most half as many particles as there are parameters, to save time. This estimates the
        Fisher information, what the users' rewards say about each parameter, without second
        derivatives.
        """

        def add(sums: Matrix, weight: Scalar, value: PerParticle, gradient: Particles) -> Matrix:
            del value
            return sums + weight * gradient.T @ gradient

        num_parameters, rows = particles.shape[1], change.rows(temperature)
        # Evenly over all ancestors: resampling leaves copies side by side.
        some = particles[:: -(-2 * len(particles) // num_parameters)]
        nothing = jnp.zeros((num_parameters, num_parameters))
        blocks = some.reshape(-1, block_size(len(some), BLOCK_SIZE), num_parameters)
        sums = jax.lax.map(
            lambda block: sum_over_rows(self.model, block, rows, add, nothing), blocks
        )
        return jnp.sum(sums, axis=0) / len(some)

    def interweave(self, rng_key: RngKey, particles: Particles) -> Particles:
        """Move every particle without touching any likelihood, if the model knows how."""
        keys = jax.random.split(rng_key, len(particles))
        return jax.vmap(self.model.interweave)(keys, particles)
