"""The table of all users, and a change of one of them.

A change is a path from the users as they were (temperature 0) to the users as they will be
(temperature 1), or to these from nothing; `rows` lists the terms of a sum over users along it.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int

from cocobandits.types import (
    PossibleContext,
    Scalar,
)
from cocobandits.users.statistics import Statistics

_FIRST_CAPACITY = 256
_GROWTH = 4


class UserRows(NamedTuple):
    """Terms of a sum over users: how much each counts, its context and its statistics."""

    weights: Float[Array, " user"]
    contexts: Float[Array, "user *point feature"]
    statistics: Statistics  # each field: user × arm
    num_rows: Int[Array, ""]  # what lies beyond is padding

    def of(self, row: Int[ArrayLike, ""]) -> tuple[Scalar, PossibleContext, Statistics]:
        """Read one term."""
        statistics = Statistics(*(field[row] for field in self.statistics))
        return self.weights[row], self.contexts[row], statistics


class UserTable(NamedTuple):
    """Contexts and statistics of all users, padded so that few shapes are ever compiled.

    Contexts have an axis of points from the first user on of whose context not all is known.
    """

    contexts: Float[Array, "user *point feature"]
    statistics: Statistics  # each field: user × arm
    num_users: Int[Array, ""]

    @classmethod
    def empty(cls, num_features: int, num_arms: int) -> "UserTable":
        """Make a table without users."""
        # NumPy's, since every shape that JAX makes is compiled.
        blank = jnp.asarray(np.zeros((_FIRST_CAPACITY, num_arms)))
        contexts = jnp.asarray(np.zeros((_FIRST_CAPACITY, num_features)))
        return cls(contexts, Statistics(blank, blank, blank), jnp.asarray(np.zeros((), dtype=int)))

    @property
    def num_features(self) -> int:
        """How many features a context has."""
        return self.contexts.shape[-1]

    def append(self, context: PossibleContext) -> "UserTable":
        """Add a user without rewards, growing the table when it is full."""
        user = int(self.num_users)
        capacity = len(self.contexts)
        table = self._grow(_GROWTH * capacity) if user == capacity else self
        table = table.fitting(context)
        return _append(table, context)

    def fitting(self, context: PossibleContext) -> "UserTable":
        """Make room for the points of a context; what is known is the same at all of them."""
        if context.ndim == 1 or self.contexts.ndim == 3:
            return self
        shape = (len(self.contexts), *context.shape)
        return self._replace(contexts=jnp.broadcast_to(self.contexts[:, None, :], shape))

    def with_arm(self) -> "UserTable":
        """Add an arm that nobody has been given."""
        wider = (jnp.pad(field, ((0, 0), (0, 1))) for field in self.statistics)
        return self._replace(statistics=Statistics(*wider))

    @jax.jit
    def of(self, user: Int[ArrayLike, ""]) -> tuple[PossibleContext, Statistics]:
        """Read one user's context and statistics."""
        return self.contexts[user], Statistics(*(field[user] for field in self.statistics))

    @jax.jit
    def replace(
        self,
        user: Int[ArrayLike, ""],
        statistics: Statistics,
        context: PossibleContext | None = None,
    ) -> "UserTable":
        """Write one user's statistics, and context if it is another now."""
        fields = zip(self.statistics, statistics, strict=True)
        changed = self._replace(
            statistics=Statistics(*(old.at[user].set(new) for old, new in fields))
        )
        if context is None:
            return changed
        return changed._replace(contexts=self.contexts.at[user].set(self._as_row(context)))

    def _as_row(self, context: PossibleContext) -> Float[Array, "*row feature"]:
        return jnp.broadcast_to(context, self.contexts.shape[1:])

    def _grow(self, capacity: int) -> "UserTable":
        def pad(rows: Float[Array, "user *columns"]) -> Float[Array, "larger *columns"]:
            spare = ((0, capacity - len(rows)),) + ((0, 0),) * (rows.ndim - 1)
            return jnp.asarray(np.pad(rows, spare))

        return UserTable(pad(self.contexts), Statistics(*map(pad, self.statistics)), self.num_users)


@jax.jit
def _append(table: UserTable, context: PossibleContext) -> UserTable:
    return table._replace(
        contexts=table.contexts.at[table.num_users].set(table._as_row(context)),
        num_users=table.num_users + 1,
    )


class Added(NamedTuple):
    """One reward that was added; the arm is -1 if a change is something else."""

    arm: Int[Array, ""]
    reward: Scalar

    @classmethod
    def of(cls, arm: Int[ArrayLike, ""] = -1, reward: Float[ArrayLike, ""] = 0.0) -> "Added":
        """Turn plain numbers into arrays."""
        return cls(jnp.asarray(arm, dtype=int), jnp.asarray(reward, dtype=float))


class Change(NamedTuple):
    """The table before a change, and one user's statistics and context after it.

    Attributes:
        table: before the change.
        user: the number of the one who changes.
        statistics, context: of that user afterwards.
        added: the reward that was added, if the change is one.
        before: context and statistics of that user before the change.
        starts_empty: whether the path starts where no user has rewards.
    """

    table: UserTable
    user: Int[Array, ""]
    statistics: Statistics
    context: PossibleContext
    added: Added
    before: tuple[PossibleContext, Statistics]
    starts_empty: Bool[Array, ""]

    @classmethod
    def of(
        cls,
        table: UserTable,
        user: Int[ArrayLike, ""],
        statistics: Statistics,
        context: PossibleContext | None = None,
    ) -> "Change":
        """Describe what becomes of a user; the context stays unless another is given."""
        table = table if context is None else table.fitting(context)
        return cls(table, *_replaced(table, user, statistics, context))

    @classmethod
    def from_nothing(cls, table: UserTable) -> "Change":
        """Describe how a table with at least one user comes to all of its rewards at once."""
        return cls.of(table, 0, table.of(0)[1])._replace(starts_empty=jnp.asarray(True))

    @classmethod
    def adding(
        cls,
        table: UserTable,
        user: int,
        arm: int,
        reward: float,
        context: PossibleContext | None = None,
    ) -> "Change":
        """Describe one further reward of a user; the context stays unless another is given."""
        table = table if context is None else table.fitting(context)
        return cls(table, *_added(table, user, arm, reward, context))

    @property
    def is_removal(self) -> bool:
        """Whether rewards that were learned go, or get other values or another context.

        A change that adds a reward does nothing else, so the counts show which of the two it is.
        """
        if int(self.added.arm) >= 0:
            return False
        context, before = self.before
        added = np.asarray(self.statistics.count) - np.asarray(before.count)
        after = self.context, *self.statistics
        is_other = not all(map(np.array_equal, (context, *before), after))
        has_rewards = bool(np.asarray(before.count).any())
        return has_rewards and is_other and bool(added.min() < 0 or not added.any())

    def applied(self) -> UserTable:
        """Write the change down."""
        return self.table.replace(self.user, self.statistics, self.context)

    def rows(self, temperature: Scalar) -> UserRows:
        """List the terms of the tempered likelihood.

        The rows are the users as they were, the changed one fading, then that one as it will be.
        From nothing, all users as they will be have the temperature as their weight.
        """
        table, end = self.table, self.table.num_users
        rows = jnp.arange(len(table.contexts) + 1)
        is_new = rows == end
        users = jnp.where(is_new, self.user, rows)
        others = jnp.where(self.starts_empty, temperature, 1.0)
        fading = jnp.where(self.starts_empty, 0.0, 1.0 - temperature)
        faded = jnp.where(users == self.user, fading, others * (rows < end))
        lifted = is_new.reshape((-1,) + (1,) * self.context.ndim)
        return UserRows(
            jnp.where(is_new, temperature, faded),
            jnp.where(lifted, self.context[None], table.contexts[users]),
            Statistics(
                *(
                    jnp.where(is_new[:, None], new[None, :], old[users])
                    for new, old in zip(self.statistics, table.statistics, strict=True)
                )
            ),
            end + 1,
        )


# Compiled, and without the table, which would be copied.
@jax.jit
def _replaced(
    table: UserTable,
    user: Int[ArrayLike, ""],
    statistics: Statistics,
    context: PossibleContext | None,
) -> tuple[Any, ...]:
    before = table.of(user)
    after = before[0] if context is None else table._as_row(context)
    starts_empty = jnp.asarray(False)
    return jnp.asarray(user, dtype=int), statistics, after, Added.of(), before, starts_empty


@jax.jit
def _added(
    table: UserTable,
    user: Int[ArrayLike, ""],
    arm: Int[ArrayLike, ""],
    reward: Float[ArrayLike, ""],
    context: PossibleContext | None,
) -> tuple[Any, ...]:
    statistics = table.of(user)[1]._shift(arm, 1.0, reward)
    change = _replaced(table, user, statistics, context)
    number, after, place, _, before, starts_empty = change
    return number, after, place, Added.of(arm, reward), before, starts_empty
