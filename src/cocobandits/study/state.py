"""The state of a study: what follows from its events, with one case for each kind.

Mutated only by `StudyState.apply`, which computes first and assigns then: an event that cannot be
applied changes nothing. It never computes a probability; a decision carries its own.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from cocobandits.policies.base import History, Step
from cocobandits.policies.recipe import Moved
from cocobandits.study.completion import Points
from cocobandits.study.context import ContextValue
from cocobandits.study.design import StudyDesign
from cocobandits.study.events import (
    Answered,
    ArmAdded,
    ArmChanged,
    ArmStatus,
    Closed,
    ContextAdded,
    Corrected,
    Decided,
    Enrolled,
    Event,
    MoveMode,
    MovesAdopted,
    MovesChanged,
    Observed,
    Rewarded,
    Started,
    Withdrawn,
)
from cocobandits.study.learner import Learner
from cocobandits.study.users import Users
from cocobandits.types import FloatVector, PossibleContext, Status
from cocobandits.users.statistics import Statistics
from cocobandits.users.table import Change

_MOST_DIGITS = 18


class Reward(NamedTuple):
    """A reward as it stands now, of a decision or an observation; None if it was taken back."""

    user: int
    arm: int
    value: float | None


class Arrival(NamedTuple):
    """An enrolment, or the first reward of a source, with the number of its update."""

    user: int
    source: str | None = None
    update: int = -1


class StudyState:
    """Everything that follows from the events of a study.

    Attributes:
        design: with the arms that were added.
        moves: where particles are moved.
        learner: None if only the rest is rebuilt, as for a file with a snapshot.
        users: who enrolled.
        arms: arm → status.
        reasons: arm → what was said at its last change.
        decisions: in their order; their numbers are their ids.
        statuses: of each decision.
        open: number of a user → number of the decision that waits for a reward.
        rewards: by decision or observation, in the order in which they came.
        arrivals: enrolments and first rewards in their order.
        requests: request id → the event that answered it.
        num_observed: rewards without a decision.
        num_updates: changes of users that were learned.
        num_events: applied so far.
    """

    def __init__(self, started: Started, learner: Learner | None) -> None:
        self.design: StudyDesign = started.design
        self.moves: MoveMode = started.moves
        self.learner = learner
        self.users = Users(self.design.features)
        self.arms: dict[str, ArmStatus] = dict.fromkeys(self.design.arms, "active")
        self.reasons = dict.fromkeys(self.design.arms, "")
        self.decisions: list[Decided] = []
        self.statuses: list[Status] = []
        self.open: dict[int, int] = {}
        self.rewards: dict[str, Reward] = {}
        self.arrivals: list[Arrival] = []
        self.requests: dict[str, Event] = {}
        self.num_observed = 0
        self.num_updates = 0
        self.num_events = 1

    @classmethod
    def start(cls, started: Started, is_learning: bool = True) -> "StudyState":
        """Make the state after the first event.

        Raises:
            ConfigurationError: the policy cannot be built as designed.
        """
        is_moving = started.moves == "foreground"
        return cls(started, Learner.start(started.design, is_moving) if is_learning else None)

    @property
    def active(self) -> tuple[int, ...]:
        """Numbers of the arms that can be chosen, in rising order."""
        statuses = self.arms.values()
        return tuple(number for number, status in enumerate(statuses) if status == "active")

    @property
    def learned(self) -> Learner:
        """The learner, where there is one."""
        assert self.learner is not None
        return self.learner

    def find_decision(self, decision_id: object) -> int | None:
        """Return the number of a decision; None if there is none."""
        digits = decision_id[1:] if isinstance(decision_id, str) else ""
        # Long digits would take long to read.
        if len(digits) > _MOST_DIGITS or not (digits.isascii() and digits.isdigit()):
            return None
        number = int(digits)
        is_known = make_id(number) == decision_id and number < len(self.decisions)
        return number if is_known else None

    def apply(  # noqa: PLR0912 - one case for each kind of event
        self, event: Event, moved: Moved | None = None
    ) -> None:
        """Take in the next event; `moved` has the particles of adopted moves, if they are there.

        Raises:
            NumericalError: no particle can explain a change; nothing was changed.
            UnsupportedError: the policy takes no further arms.
        """
        if event.seq != self.num_events:
            raise ValueError(f"event {event.seq} comes after {self.num_events - 1}")
        match event:
            case Enrolled(user=user, context=values):
                self._enrol(user, self._read(values))
            case ContextAdded(user=user, context=values):
                self._add_context(user, self._read(values))
            case Decided():
                self._decide(event)
            case Answered():
                pass
            case Rewarded(decision=decision, value=value):
                self._reward(decision, value)
            case Observed(observation=name, user=user, arm=arm, value=value):
                self._add(name, self.users.number(user), self.design.arms.index(arm), value)
                self.num_observed += 1
            case Corrected(source=source, value=corrected):
                self._correct(source, corrected)
            case Closed(decision=decision):
                self._settle(self._number_of(decision), "closed")
            case Withdrawn(user=user):
                self._withdraw(user)
            case ArmAdded(arm=arm):
                self._add_arm(arm)
            case ArmChanged(arm=arm, status=status, reason=reason):
                self.arms[self.design.arms[self.design.arms.index(arm)]] = status
                self.reasons[arm] = reason
            case MovesAdopted(update=update, is_failed=is_failed):
                self._adopt(update, is_failed, moved)
            case MovesChanged(moves=moves):
                self._change_moves(moves)
            case _:
                raise ValueError(f"{type(event).__name__} after the start")
        self.num_events += 1
        if event.request_id is not None:
            self.requests[event.request_id] = event

    def history(
        self, corrected: Mapping[str, float | None] | None = None, without: int = -1
    ) -> History:
        """List enrolments and rewards in their order, with changes, or without those of a user."""
        learner, steps = self.learned, []
        for user, source, update in self.arrivals:
            if source is None:
                steps.append(Step(learner.base_key, user))
                continue
            reward = self.rewards[source]
            value = (corrected or {}).get(source, reward.value)
            is_gone = user == without or self.users.names[user] in self.users.withdrawn
            if value is not None and not is_gone:
                standardised = self.design.standardise(value)
                steps.append(Step(learner.key("update", update), user, reward.arm, standardised))
        return History(learner.key("start", 0), tuple(steps))

    def complete(self, context: FloatVector, number: int | None = None) -> PossibleContext:
        """Standardise a context; what is missing has points."""
        found: FloatVector | Points = self.users.complete(context, number)
        return jnp.asarray(found)

    def _read(self, values: tuple[ContextValue, ...]) -> FloatVector:
        pairs = zip(self.design.features, values, strict=True)
        return np.array([feature.read(value) for feature, value in pairs])

    def _number_of(self, decision_id: str) -> int:
        number = self.find_decision(decision_id)
        if number is None:
            raise ValueError(f"decision={decision_id!r}")
        return number

    def _enrol(self, user: str, context: FloatVector) -> None:
        number, learner = len(self.users), self.learner
        if learner is not None:
            learner = learner.enrolled(self.users.complete(context, number))
        self.users.add(user, context)
        self.learner = learner
        self.arrivals.append(Arrival(number))

    def _add_context(self, user: str, late: FloatVector) -> None:
        number = self.users.number(user)
        filled = self.users.filled(number, late)

        def change(learner: Learner) -> Learner:
            table, context = learner.users, self.complete(filled, number)
            changed = Change.of(table, number, table.of(number)[1], context)
            return learner.updated(changed, self.history)

        self._learn(change)
        self.users.replace(number, filled)

    def _decide(self, event: Decided) -> None:
        number, user = len(self.decisions), self.users.number(event.user)
        num_arms = len(self.design.arms)
        if not (
            event.decision == make_id(number)
            and len(event.weights) == len(event.probabilities) == num_arms
            and {event.arm, *event.eligible} <= set(self.design.arms)
        ):
            raise ValueError(f"decision={event.decision!r}")
        self.decisions.append(event)
        self.statuses.append("open")
        self.open[user] = number

    def _reward(self, decision: str, value: float) -> None:
        number = self._number_of(decision)
        made = self.decisions[number]
        self._add(decision, self.users.number(made.user), self.design.arms.index(made.arm), value)
        self._settle(number, "rewarded")

    def _add(self, source: str, user: int, arm: int, value: float) -> None:
        if source in self.rewards:
            raise ValueError(f"{source!r} has a reward")
        standardised = self.design.standardise(value)

        def change(learner: Learner) -> Learner:
            table, context = learner.users, self._context(user)
            return learner.updated(Change.adding(table, user, arm, standardised, context))

        self.arrivals.append(Arrival(user, source, self._learn(change)))
        self.rewards[source] = Reward(user, arm, value)

    def _correct(self, source: str, value: float | None) -> None:
        user, arm, before = self.rewards[source]
        standardise = self.design.standardise

        def change(learner: Learner) -> Learner:
            statistics = learner.users.of(user)[1]
            if before is not None:
                statistics = statistics.remove(arm, standardise(before))
            if value is not None:
                statistics = statistics.add(arm, standardise(value))
            changed = Change.of(learner.users, user, statistics, self._context(user))
            return learner.updated(changed, partial(self.history, {source: value}))

        self._learn(change)
        self.rewards[source] = Reward(user, arm, value)
        number = self.find_decision(source)
        if number is not None:
            self._settle(number, "retracted" if value is None else "rewarded")

    def _withdraw(self, user: str) -> None:
        number = self.users.number(user)

        def change(learner: Learner) -> Learner:
            nothing = Statistics.empty(len(self.design.arms))
            changed = Change.of(learner.users, number, nothing, self._context(number))
            return learner.updated(changed, partial(self.history, without=number))

        self._learn(change)
        self.users.withdraw(user)
        self.open.pop(number, None)

    def _add_arm(self, name: str) -> None:
        design, learner = self.design.with_arm(name, len(self.decisions)), self.learner
        if learner is not None:
            if learner.due is not None:
                raise ValueError("moves are due")
            learner = learner.with_arm(self.history())
        self.design, self.learner = design, learner
        self.arms[name], self.reasons[name] = "active", ""

    def _adopt(self, update: int, is_failed: bool, moved: Moved | None) -> None:
        learner = self.learner
        if learner is None:
            return
        if learner.due is None or learner.due.update.number != update:
            raise ValueError(f"no moves of update={update} are due")
        if is_failed:
            self.learner = learner.without_due()
        else:
            self.learner = learner.adopted(learner.moved() if moved is None else moved)

    def _change_moves(self, moves: MoveMode) -> None:
        if self.learner is not None:
            if self.learner.due is not None:
                raise ValueError("moves are due")
            is_moving = moves == "foreground" or not self.design.policy.is_learner
            self.learner = replace(self.learner, is_moving=is_moving)
        self.moves = moves

    def _learn(self, change: Callable[[Learner], Learner]) -> int:
        """Learn a change of a user, and return the number of the update."""
        if self.learner is not None:
            self.learner = change(self.learner)
        self.num_updates += 1
        return self.num_updates - 1

    def _context(self, user: int) -> PossibleContext | None:
        """Bring missing values up to date; None if there are none."""
        if self.users.is_complete(user):
            return None
        return self.complete(self.users.contexts[user], user)

    def _settle(self, number: int, status: Status) -> None:
        self.statuses[number] = status
        user = self.users.number(self.decisions[number].user)
        if self.open.get(user) == number:
            del self.open[user]


def make_id(number: int) -> str:
    """Write the id of a decision."""
    return f"d{number}"
