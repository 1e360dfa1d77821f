"""What a study has learned: the table of users, the policy and its state. A learner never changes.

Every method returns another learner, so a refused update leaves nothing behind. Keys derive from
(seed, purpose, sequence number). Knows users and arms by their numbers alone.

Moves elsewhere: every update is then a reweighting alone. Where one asks for moves, the learner
keeps the state before it and all that follows (`Due`). `moved` computes the update with its moves,
wherever that is done, and `adopted` carries the result through what followed, in the same order and
by reweighting alone. The first update on the way that asks for moves again is the next one due. So
the trajectory is bit-identical to that of moves in the foreground; only decisions made while moves
are pending use different particles.

A removal (`Change.is_removal`) asks for particles that are learned again from the table, so what
was due before it no longer matters: the newest removal is what is due.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import numpy as np

from cocobandits.errors import NumericalError
from cocobandits.inference.smc import SmcInfo
from cocobandits.policies.base import Arms, History, Policy
from cocobandits.policies.recipe import Moved, Recipe
from cocobandits.study.design import StudyDesign
from cocobandits.types import FloatVector, PossibleContext, RngKey, Scalar
from cocobandits.users.table import Change, UserTable

PURPOSES = {"start": 0, "decide": 1, "update": 2, "diagnose": 3, "arm": 4}


class Update(NamedTuple):
    """A change of a user's statistics or context, with its number and key."""

    number: int
    rng_key: RngKey
    change: Change


class Due(NamedTuple):
    """Moves that an update asked for.

    Attributes:
        update: the one that did.
        state: of the policy before it.
        since: what followed: updates, and the table of users after each enrolment.
    """

    update: Update
    state: Any
    since: tuple[Update | UserTable, ...] = ()


@dataclass(frozen=True, eq=False)
class Learner:
    """A policy, its state, and the table of users that it learns from.

    Attributes:
        base_key: that all others derive from.
        policy: for the arms there are.
        users: contexts and statistics.
        state: of the policy.
        is_moving: whether updates move particles themselves.
        num_updates: changes learned so far.
        health: diagnostics of the last update, or of the moves adopted since.
        due: moves that are due; None without any.
    """

    base_key: RngKey
    policy: Policy[Any]
    users: UserTable
    state: Any
    is_moving: bool
    num_updates: int = 0
    health: SmcInfo | None = None
    due: Due | None = None

    @classmethod
    def start(cls, design: StudyDesign, is_moving: bool) -> "Learner":
        """Make the learner of a study in which nobody has enrolled.

        Raises:
            ConfigurationError: the policy cannot be built as designed.
        """
        base_key, policy = jax.random.key(design.seed), recipe_of(design).policy()
        users = UserTable.empty(len(design.features), len(design.arms))
        state = policy.init(_derive(base_key, PURPOSES["start"], 0))
        # Without particles there is nothing to move.
        return cls(base_key, policy, users, state, is_moving or not design.policy.is_learner)

    @property
    def log_evidence(self) -> float | None:
        """The log of p(all rewards) under the model; None for a policy without particles."""
        return self.policy.log_evidence(self.state)

    def key(self, purpose: str, sequence: int) -> RngKey:
        """Derive the key of one draw."""
        return _derive(self.base_key, PURPOSES[purpose], sequence)

    def draw(self, sequence: int) -> float:
        """Draw the uniform number of a decision."""
        return float(_uniform(self.key("decide", sequence)))

    def weights(self, user: int, arms: tuple[int, ...]) -> FloatVector:
        """Compute the probability of every arm, if only some can be chosen.

        Raises:
            NumericalError: the policy's probabilities are not a distribution.
        """
        weights = np.zeros(self.policy.problem.num_arms)
        if len(arms) == 1:
            weights[list(arms)] = 1.0
            return weights
        some: Arms = None if len(arms) == len(weights) else arms
        probabilities = self.policy.probabilities(self.state, self.users, user, some)
        found = np.asarray(probabilities, dtype=float)
        if not (np.all(found >= 0) and 0.99 < found.sum() < 1.01):
            raise NumericalError(
                f"Expected probabilities that sum to one; got {found.tolist()} from "
                f"policy={self.policy.settings.name!r}. Check that range and noise fit the rewards."
            )
        weights[list(arms)] = found / found.sum()
        return weights

    def enrolled(self, context: PossibleContext) -> "Learner":
        """Add a user without rewards."""
        users = self.users.append(context)
        return replace(
            self,
            users=users,
            state=self.policy.enrol(self.state, users),
            due=self.due and self.due._replace(since=(*self.due.since, users)),
        )

    def updated(self, change: Change, history: Callable[[], History] | None = None) -> "Learner":
        """Learn one further reward, or any other change if all rewards after it are given.

        Raises:
            NumericalError: no particle can explain the change.
        """
        update = Update(self.num_updates, self.key("update", self.num_updates), change)
        due = self.due
        if not self.is_moving:
            state, health, is_due = self.policy.reweigh(update.rng_key, self.state, change)
            if change.is_removal:
                due = Due(update, self.state)
            elif due is not None:
                due = due._replace(since=(*due.since, update))
            elif is_due:
                due = Due(update, self.state)
        elif history is None:
            state, health = self.policy.update(update.rng_key, self.state, change)
        else:
            state, health = self.policy.revise(update.rng_key, self.state, change, history())
        return replace(
            self,
            users=change.applied(),
            state=state,
            health=health,
            num_updates=self.num_updates + 1,
            due=due,
        )

    def moved(self) -> Moved:
        """Compute the update whose moves are due.

        Raises:
            NumericalError: no particle can explain it.
        """
        assert self.due is not None
        update = self.due.update
        return self.policy.update(update.rng_key, self.due.state, update.change)

    def adopted(self, moved: Moved) -> "Learner":
        """Carry particles through what followed their moves, and put them in use.

        Raises:
            NumericalError: no particle can explain what followed.
        """
        assert self.due is not None
        (state, health), following = moved, None
        for number, event in enumerate(self.due.since):
            if isinstance(event, UserTable):
                state = self.policy.enrol(state, event)
                continue
            after, _, is_due = self.policy.reweigh(event.rng_key, state, event.change)
            if is_due and following is None:
                following = Due(event, state, self.due.since[number + 1 :])
            state = after
        return replace(self, state=state, health=health, due=following)

    def without_due(self) -> "Learner":
        """Give up moves that are due; the particles stay reweighted."""
        return replace(self, due=None)

    def with_arm(self, history: History) -> "Learner":
        """Add an arm, the last, which has its prior.

        Raises:
            UnsupportedError: the policy was configured for the present arms.
        """
        users = self.users.with_arm()
        key = self.key("arm", self.policy.problem.num_arms)
        policy, state = self.policy.add_arm(key, self.state, users, history)
        return replace(self, policy=policy, users=users, state=state)


def recipe_of(design: StudyDesign) -> Recipe:
    """Read from a design what a policy is built from."""
    first = replace(design.problem(), num_arms=design.num_first_arms)
    return Recipe(first, design.policy, len(design.added))


@jax.jit
def _derive(key: RngKey, purpose: int, sequence: int) -> RngKey:
    return jax.random.fold_in(jax.random.fold_in(key, purpose), sequence)


@jax.jit
def _uniform(key: RngKey) -> Scalar:
    return jax.random.uniform(key)
