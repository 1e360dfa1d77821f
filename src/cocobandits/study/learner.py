"""What a study has learned: the table of users, the policy and its state.

Owns updates, their numbers, random keys, and moves in the foreground or background. A key derives
from (seed, purpose, sequence number). Knows users and arms by their numbers alone.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cocobandits.errors import NumericalError
from cocobandits.inference.smc import SmcInfo
from cocobandits.models.histories import Change, UserTable
from cocobandits.policies.base import Arms, History, Policy, Step
from cocobandits.study.background import Adoption, BackgroundMoves, Moves, Update, plan_for
from cocobandits.study.completion import Points
from cocobandits.study.design import StudyDesign
from cocobandits.study.moving_process import MOVING_PROCESS
from cocobandits.study.recipe import Recipe
from cocobandits.types import FloatVector, PossibleContext, RngKey, Scalar

# Arm and standardised reward of a decision; None if it has none, or its user has withdrawn.
RewardOf = Callable[[int], tuple[int, float] | None]
PURPOSES = {"start": 0, "decide": 1, "update": 2, "diagnose": 3, "arm": 4}


class Arrival(NamedTuple):
    """An enrolment, if the decision is -1, or the first reward of a decision.

    Attributes:
        user: number of the user.
        decision: number of the decision.
        update: number of the update that learned the reward.
    """

    user: int
    decision: int = -1
    update: int = -1


class Memory(NamedTuple):
    """What a learner needs to go on."""

    users: UserTable
    state: Any
    num_updates: int
    adoptions: list[Adoption]
    arrivals: list[Arrival]


class Learner:
    """A policy, its state, and the table of users that it learns from.

    Args:
        design: of the study.
        moves: where particles are moved, or the record to repeat.

    Raises:
        ConfigurationError: the policy cannot be built as designed.
    """

    def __init__(self, design: StudyDesign, moves: Moves) -> None:
        self._plan = plan_for(moves)
        self._base_key = jax.random.key(design.seed)
        self.design = design
        self.policy: Policy[Any] = Recipe.of(design).policy()
        self.users = UserTable.empty(len(design.features), len(design.arms))
        self.state: Any = self.policy.init(self.key("start", 0))
        self.num_updates = 0
        self.health: SmcInfo | None = None
        self.adoptions: list[Adoption] = []
        self.arrivals: list[Arrival] = []
        # Without particles there is nothing to move.
        is_moving = moves != "foreground" and design.policy.is_learner
        self.background = self._moves() if is_moving else None

    @property
    def log_evidence(self) -> float | None:
        """The log of p(all rewards) under the model; None for a policy without particles."""
        return self.policy.log_evidence(self.state)

    def key(self, purpose: str, sequence: int) -> RngKey:
        """Derive the key of one draw."""
        return _derive(self._base_key, PURPOSES[purpose], sequence)

    def draw(self, sequence: int) -> float:
        """Draw the uniform number of a decision."""
        return float(_uniform(self.key("decide", sequence)))

    def weights(self, user: int, arms: tuple[int, ...]) -> FloatVector:
        """Compute the probability of every arm, if only some can be chosen.

        Raises:
            NumericalError: the policy's probabilities are not a distribution.
        """
        weights = np.zeros(len(self.design.arms))
        if len(arms) == 1:
            weights[list(arms)] = 1.0
            return weights
        some: Arms = None if len(arms) == len(weights) else arms
        probabilities = self.policy.probabilities(self.state, self.users, user, some)
        found = np.asarray(probabilities, dtype=float)
        if not (np.all(found >= 0) and 0.99 < found.sum() < 1.01):
            raise NumericalError(
                f"Expected probabilities that sum to one; got {found.tolist()} from "
                f"policy={self.design.policy.name!r}. Check that range and noise fit the rewards."
            )
        weights[list(arms)] = found / found.sum()
        return weights

    def enrol(self, context: FloatVector | Points) -> None:
        """Add a user without rewards."""
        users = self.users.append(jnp.asarray(context))
        self.state = self.policy.enrol(self.state, users)
        self.users = users
        self.arrivals.append(Arrival(int(users.num_users) - 1))
        if self.background is not None:
            self.background.enrol(users)

    def add(self, decision: int, change: Change, num_decisions: int) -> None:
        """Learn the first reward of a decision.

        Raises:
            NumericalError: no particle can explain the reward, or moves in the background failed.
        """
        arrival = Arrival(int(change.user), decision, self.num_updates)
        self._update(change, num_decisions, None)
        self.arrivals.append(arrival)

    def revise(self, change: Change, num_decisions: int, reward_of: RewardOf) -> None:
        """Learn any other change; `reward_of` has all rewards after it.

        Raises:
            NumericalError: no particle can explain the change, or moves in the background failed.
        """
        self._update(change, num_decisions, self.history(reward_of))

    def history(self, reward_of: RewardOf) -> History:
        """List enrolments and rewards in the order they came in; decisions of None are left out."""
        steps = []
        for user, decision, update in self.arrivals:
            if decision < 0:
                steps.append(Step(self._base_key, user))
            elif (given := reward_of(decision)) is not None:
                steps.append(Step(self.key("update", update), user, *given))
        return History(self.key("start", 0), tuple(steps))

    def _update(self, change: Change, num_decisions: int, history: History | None) -> None:
        key = self.key("update", self.num_updates)
        if self.background is None:
            learned = (
                self.policy.update(key, self.state, change)
                if history is None
                else self.policy.revise(key, self.state, change, history)
            )
        else:
            self.adopt(num_decisions)
            self.background.raise_failure()
            learned = self.background.learn(self.state, Update(self.num_updates, key, change))
        self.state, self.health = learned
        self.users = change.applied()
        self.num_updates += 1

    def add_arm(self, design: StudyDesign, num_decisions: int, reward_of: RewardOf) -> None:
        """Go on with a design that has one more arm; moves under way are waited for.

        Raises:
            UnsupportedError: the policy was configured for the present arms.
            NumericalError: moves in the background failed.
        """
        self.catch_up(num_decisions)
        key = self.key("arm", len(design.arms) - 1)
        users = self.users.with_arm()
        self.policy, self.state = self.policy.add_arm(
            key, self.state, users, self.history(reward_of)
        )
        self.design, self.users = design, users
        if self.background is not None:
            self.background = self._moves()

    def adopt(self, num_decisions: int, is_waiting: bool = False) -> None:
        """Take over moves that are done.

        Raises:
            ConflictError: the calls are not those of the study that is repeated.
        """
        if self.background is not None:
            now = self.num_updates, num_decisions
            while (adopted := self.background.adopt(*now, is_waiting=is_waiting)) is not None:
                self.state, self.health = adopted

    def catch_up(self, num_decisions: int) -> None:
        """Wait for moves and adopt them, until none are due.

        Raises:
            NumericalError: moves failed, now or before.
        """
        if self.background is not None:
            self.adopt(num_decisions, is_waiting=True)
            self.background.raise_failure()

    def remember(self) -> Memory:
        """List what is needed to go on."""
        return Memory(self.users, self.state, self.num_updates, self.adoptions, self.arrivals)

    def recall(self, memory: Memory) -> None:
        """Go on from where another learner of the same design was."""
        self.users, self.state = memory.users, memory.state
        self.num_updates = memory.num_updates
        self.adoptions += memory.adoptions
        self.arrivals += memory.arrivals

    def fork(self) -> "Learner":
        """Return a learner that goes on from here; what it learns changes nothing in this one.

        Moves that are under way here are not waited for.
        """
        fork = Learner(self.design, "foreground" if self.background is None else "background")
        fork.recall(self.remember()._replace(adoptions=[]))
        return fork

    def template(self, points: PossibleContext | None) -> tuple[UserTable, Any]:
        """Return users and a state that have the shapes of any other; with points if asked for."""
        users = self.users if points is None else self.users.append(points)
        return users, self.state if points is None else self.policy.enrol(self.state, users)

    def _moves(self) -> BackgroundMoves:
        move = partial(MOVING_PROCESS.update, self.design)
        return BackgroundMoves(self.policy, move, self.adoptions, self._plan)


@jax.jit
def _derive(key: RngKey, purpose: int, sequence: int) -> RngKey:
    return jax.random.fold_in(jax.random.fold_in(key, purpose), sequence)


@jax.jit
def _uniform(key: RngKey) -> Scalar:
    return jax.random.uniform(key)
