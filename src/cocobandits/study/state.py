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
from cocobandits.study import events
from cocobandits.study.context import ContextValue
from cocobandits.study.design import StudyDesign
from cocobandits.study.events import ArmStatus, Event, MoveMode
from cocobandits.study.learner import Learner
from cocobandits.study.users import Users
from cocobandits.types import FloatVector, PossibleContext, Status
from cocobandits.users.statistics import Statistics
from cocobandits.users.table import Change, UserTable


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
    """Everything that follows from the events of a study, at first from its start.

    Attributes:
        design: with the arms that were added.
        moves: where particles are moved.
        learner: None if only the rest is rebuilt, as for a file with a snapshot.
        users: who enrolled.
        arms: arm → status.
        reasons: arm → what was said at its last change.
        decisions: by id, in their order.
        statuses: of each decision, by id.
        open: number of a user → the decision that waits for a reward.
        rewards: by decision or observation, in the order in which they came.
        arrivals: enrolments and first rewards in their order.
        requests: request id → the event that answered it.
        num_observed: rewards without a decision.
        num_updates: changes of users that were learned.
        num_events: applied so far.

    Raises:
        ConfigurationError: the policy cannot be built as designed.
    """

    def __init__(self, started: events.Started, is_learning: bool = True) -> None:
        self.design: StudyDesign = started.design
        self.moves: MoveMode = started.moves
        self.learner: Learner | None = None
        if is_learning:
            self.learner = Learner.start(self.design, self.moves == "foreground")
        self.users = Users(self.design.features)
        self.arms: dict[str, ArmStatus] = dict.fromkeys(self.design.arms, "active")
        self.reasons = dict.fromkeys(self.design.arms, "")
        self.decisions: dict[str, events.Decided] = {}
        self.statuses: dict[str, Status] = {}
        self.open: dict[int, events.Decided] = {}
        self.rewards: dict[str, Reward] = {}
        self.arrivals: list[Arrival] = []
        self.requests: dict[str, Event] = {}
        self.num_observed = 0
        self.num_updates = 0
        self.num_events = 1

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
            case events.Enrolled(user=user, context=values):
                self._enrol(user, self._read(values))
            case events.ContextAdded(user=user, context=values):
                self._add_context(user, self._read(values))
            case events.Decided():
                self._decide(event)
            case events.Answered():
                pass
            case events.Rewarded(decision=decision, value=value):
                self._reward(decision, value)
            case events.Observed(observation=name, user=user, arm=arm, value=value):
                self._add(name, self.users.numbers[user], self.design.arms.index(arm), value)
                self.num_observed += 1
            case events.Corrected(source=source, value=corrected):
                self._correct(source, corrected)
            case events.Closed(decision=decision):
                self._settle(decision, "closed")
            case events.Withdrawn(user=user):
                self._withdraw(user)
            case events.ArmAdded(arm=arm):
                self._add_arm(arm)
            case events.ArmChanged(arm=arm, status=status, reason=reason):
                self.arms[arm], self.reasons[arm] = status, reason
            case events.MovesAdopted(update=update, is_failed=is_failed):
                self._adopt(update, is_failed, moved)
            case events.MovesChanged(moves=moves):
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
                standardised = self.design.rewards.standardise(value)
                steps.append(Step(learner.key("update", update), user, reward.arm, standardised))
        return History(learner.key("start", 0), tuple(steps))

    def complete(self, context: FloatVector, number: int | None = None) -> PossibleContext:
        """Standardise a context; what is missing has points."""
        return jnp.asarray(self.users.complete(context, number))

    def _read(self, values: tuple[ContextValue, ...]) -> FloatVector:
        pairs = zip(self.design.features, values, strict=True)
        return np.array([feature.read(value) for feature, value in pairs])

    def _enrol(self, user: str, context: FloatVector) -> None:
        number, learner = len(self.users.names), self.learner
        if learner is not None:
            learner = learner.enrolled(self.complete(context, number))
        self.users.add(user, context)
        self.learner = learner
        self.arrivals.append(Arrival(number))

    def _add_context(self, user: str, late: FloatVector) -> None:
        number = self.users.numbers[user]
        known = self.users.contexts[number]
        filled = np.where(np.isnan(known), late, known)

        def change(table: UserTable) -> Change:
            return Change.of(table, number, table.of(number)[1], self.complete(filled, number))

        self._learn(change, self.history)
        self.users.replace(number, filled)

    def _decide(self, event: events.Decided) -> None:
        user = self.users.numbers[event.user]
        self.decisions[event.decision] = self.open[user] = event
        self.statuses[event.decision] = "open"

    def _reward(self, decision: str, value: float) -> None:
        made = self.decisions[decision]
        self._add(decision, self.users.numbers[made.user], self.design.arms.index(made.arm), value)
        self._settle(decision, "rewarded")

    def _add(self, source: str, user: int, arm: int, value: float) -> None:
        standardised = self.design.rewards.standardise(value)

        def change(table: UserTable) -> Change:
            return Change.adding(table, user, arm, standardised, self._context(user))

        self.arrivals.append(Arrival(user, source, self._learn(change)))
        self.rewards[source] = Reward(user, arm, value)

    def _correct(self, source: str, value: float | None) -> None:
        user, arm, _ = self.rewards[source]
        corrected = Reward(user, arm, value)

        def change(table: UserTable) -> Change:
            statistics = self._statistics(user, {source: corrected})
            return Change.of(table, user, statistics, self._context(user))

        self._learn(change, partial(self.history, {source: value}))
        self.rewards[source] = corrected
        if source in self.decisions:
            self._settle(source, "retracted" if value is None else "rewarded")

    def _withdraw(self, user: str) -> None:
        number = self.users.numbers[user]

        def change(table: UserTable) -> Change:
            nothing = Statistics.empty(len(self.design.arms))
            return Change.of(table, number, nothing, self._context(number))

        self._learn(change, partial(self.history, without=number))
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

    def _learn(
        self,
        change: Callable[[UserTable], Change],
        history: Callable[[], History] | None = None,
    ) -> int:
        """Learn a change of a user, and return the number of the update."""
        if self.learner is not None:
            self.learner = self.learner.updated(change(self.learner.users), history)
        self.num_updates += 1
        return self.num_updates - 1

    def _statistics(self, user: int, corrected: Mapping[str, Reward]) -> Statistics:
        """Add up a user's rewards in order; subtracting a huge one would leave its rounding."""
        statistics = Statistics.empty(len(self.design.arms))
        for source, known in self.rewards.items():
            reward = corrected.get(source, known)
            if reward.user == user and reward.value is not None:
                value = self.design.rewards.standardise(reward.value)
                statistics = statistics.add(reward.arm, value)
        return statistics

    def _context(self, user: int) -> PossibleContext | None:
        """Bring missing values up to date; None if there are none."""
        context = self.users.contexts[user]
        return self.complete(context, user) if np.isnan(context).any() else None

    def _settle(self, decision: str, status: Status) -> None:
        self.statuses[decision] = status
        made = self.decisions[decision]
        user = self.users.numbers[made.user]
        if self.open.get(user) is made:
            del self.open[user]
