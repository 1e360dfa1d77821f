"""One study in this process: enrol, decide, reward; arms that come and go; storage.

Every verb is a rule that checks the call and computes an event (`rules.py`), and a case of the fold
that takes it in (`state.py`). It does all of its work, or raises and changes nothing, but for moves
that are done by then: it adopts these first. Queries read and change nothing. The same calls with
the same seed give the same decisions, bit for bit. One lock guards every public method, so a study
may be shared between threads.
"""

import logging
import secrets
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from datetime import datetime
from functools import wraps
from inspect import getmembers_static, isfunction
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple, TypeVar

from cocobandits.checks import is_name, plain_name, read_name, read_path
from cocobandits.errors import (
    CocoError,
    ConfigurationError,
    ConflictError,
    InputError,
    NumericalError,
    brief,
)
from cocobandits.notice import NOTICE
from cocobandits.persistence import archive
from cocobandits.policies.description import PolicySettings
from cocobandits.policies.plain import check_classes
from cocobandits.policies.recipe import Moved
from cocobandits.rewards import Rewards
from cocobandits.study import events, rules
from cocobandits.study.context import ContextDeclaration, ContextValues
from cocobandits.study.design import Floor, StudyDesign
from cocobandits.study.events import Event, MoveMode, Started
from cocobandits.study.learner import recipe_of
from cocobandits.study.queries import Decision, Queries
from cocobandits.study.replay import Difference, fold, listed, verify_events
from cocobandits.study.snapshot import restore, take_snapshot
from cocobandits.study.state import StudyState
from cocobandits.study.warm_up import rehearse
from cocobandits.workers.moves import Mover, ProcessMover

_LOG = logging.getLogger(__name__)
C = TypeVar("C", bound=type)
At = datetime | str | None


def guarded(cls: C) -> C:
    """Let one thread at a time into the public methods and properties of a class."""

    def hold(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def held(self: Any, *arguments: Any, **named: Any) -> Any:
            with self._lock:
                return method(self, *arguments, **named)

        return held

    for name, member in getmembers_static(cls):
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            assert member.fget is not None
            setattr(cls, name, property(hold(member.fget)))
        elif isfunction(member):
            setattr(cls, name, hold(member))
    return cls


class Moving(NamedTuple):
    """Moves under way: the number of the update that asked for them, and their result."""

    update: int
    result: Future[Moved]


class Failure(NamedTuple):
    """Moves that failed, and why."""

    update: int
    error: BaseException


@guarded
class Study(Queries):
    """Serve users one arm at a time, and learn from all of them.

    Args:
        arms: names of the arms, at least two.
        context: feature name → (low, high), a list of category names, or the type `bool`. Empty for
            no context.
        rewards: `Gaussian(low, high)`, `Bounded(low, high)` or `Bernoulli()`.
        policy: settings of a policy, for example `CoIDS(steps_per_user=5)`, or the name of one with
            its default settings; see `cocobandits.policy_names`.
        floor: least probability of every arm that can be chosen, or a mapping from arm to that.
        seed: fixes every decision; None draws one from the operating system, which the first event
            records.
        moves: "foreground" moves particles within the reward that makes it due; "background" does
            so in another process, while rewards and decisions go on; a `ProcessMover` is a
            background that several studies share.

    Verbs take `at`, the time as its caller says it, and `request_id`: a request that is repeated
    gets the first answer.

    Raises:
        ConfigurationError: the design is refused; the message says what to change.
        UnknownNameError: there is no such policy, or no such arm with a floor.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - the design of a study has this many parts
        self,
        arms: Sequence[str],
        context: ContextDeclaration,
        rewards: Rewards,
        policy: PolicySettings | str = "coids",
        floor: Floor = 0.0,
        seed: int | None = None,
        moves: MoveMode | Mover = "foreground",
        *,
        at: At = None,
    ) -> None:
        mode = _mode(moves)
        drawn = secrets.randbits(63) if seed is None else seed
        design = StudyDesign.declare(arms, context, rewards, policy, floor, drawn)
        started = Started(design, mode, seq=0, at=_read_time(at))
        self._begin(StudyState(started), [started], moves)
        self._announce_model()

    def _begin(self, state: StudyState, past: Iterable[Event], moves: MoveMode | Mover) -> None:
        NOTICE.watch("10 to 40 s" if state.design.policy.is_learner else "a few seconds")
        self._lock = RLock()
        self._state, self._events = state, list(past)
        here = ProcessMover() if moves == "background" else None
        self._mover: Mover | None = here if isinstance(moves, str) else moves
        self._moving: Moving | None = None
        self._failure: Failure | None = None
        self._start_moves()

    def enrol(
        self,
        user: str,
        context: ContextValues | None = None,
        *,
        at: At = None,
        request_id: str | None = None,
    ) -> None:
        """Add a user; the same user with the same context again is harmless.

        Missing features (None or absent) are integrated out over the values seen in other users.
        Those values are brought up to date with every reward of this user, as an exact change of
        likelihood; a user without further rewards keeps the last ones.

        Raises:
            InputError: the context or the user's name is refused.
            UnknownNameError: a feature was never declared.
            ConflictError: the user is enrolled with another context, or has withdrawn.
        """
        known = {} if context is None else context
        self._do(rules.enrol, at, request_id, user=user, context=known)

    def update_context(
        self, user: str, context: ContextValues, *, at: At = None, request_id: str | None = None
    ) -> None:
        """Add values that were missing so far; the same values again are harmless.

        The user's rewards are learned again at the context known now.

        Raises:
            InputError: a value is refused.
            UnknownNameError: the user is not enrolled, or a feature was never declared.
            ConflictError: another value was recorded.
            NumericalError: no particle can explain the rewards there, or moves in the background
                failed.
        """
        self._do(rules.update_context, at, request_id, user=user, context=context)

    def decide(
        self,
        user: str,
        eligible: Sequence[str] | None = None,
        *,
        at: At = None,
        request_id: str | None = None,
    ) -> Decision:
        """Choose an arm for a user; an open decision is returned again, never drawn twice.

        The choice is made among the arms that are active and, if a list is given, eligible, as if
        there were no others.

        Raises:
            InputError: none of the eligible arms is active, or they are no list.
            UnknownNameError: the user is not enrolled, or an arm is not known.
            NumericalError: the policy's probabilities are not a distribution.
            ConflictError: no arm is active, or the arm of the open decision is not eligible.
        """
        event = self._do(rules.decide, at, request_id, user=user, eligible=eligible)
        made = self._open_decision(user) if event is None else event.decision
        return self.decision(made)

    def decide_many(
        self, users: Sequence[str], eligible: Sequence[str] | None = None, *, at: At = None
    ) -> list[Decision]:
        """Choose an arm for each of several users, or for none of them if a call is refused.

        Decisions that were made before a numerical failure stand.

        Raises:
            InputError: the users are no list, or as `decide` does.
            UnknownNameError, NumericalError, ConflictError: as `decide` does.
        """
        if isinstance(users, str) or not isinstance(users, list | tuple):
            raise InputError(
                f"Expected a list of users; got users={brief(users)}. Use decide() for one."
            )
        for user in users:
            rules.find_arms(self._state, user, eligible)
        return [self.decide(user, eligible, at=at) for user in users]

    def decision(self, decision_id: str) -> Decision:
        """Look up a decision by its id.

        Raises:
            UnknownNameError: there is no such decision.
        """
        made, arms = rules.find_decision(self._state, decision_id), self._state.design.arms
        present = arms[: len(made.weights)]
        return Decision(
            made.decision,
            made.user,
            made.arm,
            dict(zip(present, made.probabilities, strict=True)),
            made.draw,
            dict(zip(present, made.weights, strict=True)),
            made.eligible,
        )

    def reward(
        self, decision_id: str, value: float, *, at: At = None, request_id: str | None = None
    ) -> None:
        """Record the reward of a decision, however late; the same value twice is harmless.

        It counts whatever has become of its arm.

        Raises:
            InputError: the value is refused.
            ConflictError: another value was recorded, or the user has withdrawn.
            UnknownNameError: there is no such decision.
            NumericalError: no particle can explain the reward, or moves in the background failed.
        """
        self._do(rules.reward, at, request_id, decision=decision_id, value=value)

    def observe(
        self,
        user: str,
        arm: str,
        value: float,
        *,
        at: At = None,
        request_id: str | None = None,
    ) -> str:
        """Record a reward that did not come from a decision of this study, as for a warm start.

        Returns an id that `correct` takes.

        Raises:
            InputError: the value is refused.
            UnknownNameError: the user is not enrolled, or the arm is not known.
            NumericalError: no particle can explain the reward, or moves in the background failed.
        """
        event = self._do(rules.observe, at, request_id, user=user, arm=arm, value=value)
        return str(event.observation)

    def correct(
        self, source: str, value: float | None, *, at: At = None, request_id: str | None = None
    ) -> None:
        """Replace the reward of a decision or observation, or take it back with None.

        The first value stays in `events`; the value that is recorded is harmless. The population is
        learned again from all rewards, in the call itself unless moves are in the background.

        Raises:
            InputError: the value is refused.
            ConflictError: there is nothing to correct yet, or the user has withdrawn.
            UnknownNameError: there is no such decision or observation.
            NumericalError: no particle can explain the new value, or moves in the background
                failed.
        """
        self._do(rules.correct, at, request_id, source=source, value=value)

    def close(self, decision_id: str, *, at: At = None, request_id: str | None = None) -> None:
        """Stop waiting for a reward, so that the user can be served again; it may still come late.

        Raises:
            ConflictError: the decision is not open, or the user has withdrawn.
            UnknownNameError: there is no such decision.
        """
        self._do(rules.close, at, request_id, decision=decision_id)

    def withdraw(self, user: str, *, at: At = None, request_id: str | None = None) -> None:
        """Unlearn a user: the posterior becomes what it is without that user's rewards.

        The population is learned again as after a correction, if the user had rewards.
        The user's context is no longer used to fill in what is missing from others'. The log of
        decisions keeps what was decided and rewarded.

        Raises:
            UnknownNameError: the user is not enrolled.
            NumericalError: the particles cannot follow the change, or moves in the background
                failed.
        """
        self._do(rules.withdraw, at, request_id, user=user)

    def suspend(
        self, arm: str, reason: str = "", *, at: At = None, request_id: str | None = None
    ) -> None:
        """Offer an arm no more until it is activated again; an open decision stays as it is.

        Once no arm is active, nobody can be served.

        Raises:
            InputError: the reason is no text.
            ConflictError: the arm was withdrawn.
            UnknownNameError: there is no such arm.
        """
        self._do(rules.change_arm, at, request_id, arm=arm, status="suspended", reason=reason)

    def withdraw_arm(
        self, arm: str, reason: str = "", *, at: At = None, request_id: str | None = None
    ) -> None:
        """Offer an arm never again; an open decision stays as it is, and so does what was learned.

        Raises:
            InputError: the reason is no text.
            UnknownNameError: there is no such arm.
        """
        self._do(rules.change_arm, at, request_id, arm=arm, status="withdrawn", reason=reason)

    def activate(self, arm: str, *, at: At = None, request_id: str | None = None) -> None:
        """Offer an arm again that was suspended.

        Raises:
            ConflictError: the arm was withdrawn.
            UnknownNameError: there is no such arm.
        """
        self._do(rules.change_arm, at, request_id, arm=arm, status="active")

    def add_arm(self, name: str, *, at: At = None, request_id: str | None = None) -> None:
        """Offer another arm from the next decision on; moves in the background are waited for.

        What was learned stays, and the new arm starts from its prior. Its floor is the one that was
        given for all arms, or else none.

        Raises:
            InputError: the name is refused.
            ConflictError: there is such an arm.
            ConfigurationError: floors would leave nothing to choose with, or the population model
                is too large for another arm.
            UnsupportedError: the policy was configured for the present arms.
            NumericalError: moves in the background failed.
        """
        before = self.describe().model.name
        self._do(rules.add_arm, at, request_id, arm=name)
        if self.describe().model.name != before:
            self._announce_model()

    def catch_up(self, *, at: At = None) -> None:
        """Wait for moves in the background and adopt them, until none are due.

        Unless moves failed, the posterior is then that of a study in the foreground that was given
        the same rewards, bit for bit.

        Raises:
            NumericalError: moves failed, now or before; the particles stay reweighted.
        """
        self._adopt(_read_time(at), is_waiting=True)
        self._raise_failure()

    def warm_up(self, has_gaps: bool = False) -> None:
        """Compile now what enrolment, decisions, rewards, moves and explanations will need.

        A copy of the study serves a few invented users until its particles have moved. The study
        itself does not change, and later decides as it would have without this call.

        Args:
            has_gaps: also compile for users with missing features, if there have been none.
        """
        rehearse(self._copy(), has_gaps=False)
        if has_gaps or not self._state.users.were_all_known:
            rehearse(self._copy(), has_gaps=True)

    def save(self, path: str | Path) -> None:
        """Write the study to one file; an existing one is replaced whole or not at all.

        Moves in the background are waited for and adopted first.

        Raises:
            InputError: the path is refused.
            StorageError: the file cannot be written.
            NumericalError: moves in the background failed; the next call saves without them.
        """
        place = read_path("path", path)
        self.catch_up()
        plain = [events.to_plain(event) for event in self._events]
        archive.write(place, archive.Archive(plain, take_snapshot(self._state)))

    @classmethod
    def load(
        cls,
        path: str | Path,
        moves: MoveMode | Mover = "foreground",
        policies: Sequence[type[PolicySettings]] = (),
    ) -> "Study":
        """Read a study that `save` wrote; it decides as the saved one would have.

        If the snapshot in the file cannot be used, the study is learned again from its events.

        Args:
            path: of the file.
            moves: as in the constructor.
            policies: classes of policies from outside the package, if the study uses one.

        Raises:
            ConfigurationError: `moves` is refused, or `policies` are not classes.
            InputError: the path is refused.
            UnknownNameError: the study has a policy from outside the package, whose class is not
                among `policies`.
            StorageError: the file is missing, damaged, or not a saved study.
        """
        _mode(moves)
        check_classes(policies)
        place = read_path("path", path)
        stored = archive.read(place)
        with archive.refusing(place, "its content cannot be used"):
            past = [events.from_plain(item, policies) for item in stored.events]
            state = fold(past, is_learning=False)
            state.learner = restore(state, stored.snapshot)
            if state.learner is None:
                _LOG.warning("The snapshot of %s cannot be used: learning again.", place)
                state = fold(past)
        return cls._of(state, past, moves)

    @classmethod
    def replay(cls, past: Iterable[Event], moves: MoveMode | Mover = "foreground") -> "Study":
        """Rebuild a study from its events; it goes on as the one that recorded them would have.

        Raises:
            ConfigurationError: `moves` is refused.
            ConflictError: they are not the events of a study.
        """
        _mode(moves)
        recorded = listed(past)
        return cls._of(fold(recorded), recorded, moves)

    def verify(self) -> tuple[Difference, ...]:
        """Derive every decision again from the events alone, and list what differs."""
        return verify_events(self._events)

    @classmethod
    def _of(cls, state: StudyState, past: list[Event], moves: MoveMode | Mover) -> "Study":
        study = cls.__new__(cls)
        study._begin(state, past, moves)
        mode = _mode(moves)
        if mode != state.moves:
            while (due := state.learned.due) is not None:
                study._record(events.MovesAdopted(due.update.number, is_failed=False))
            study._record(events.MovesChanged(mode))
        return study

    def _copy(self) -> "Study":
        """Return a study that goes on from here without changing this one."""
        state = fold(self._events, is_learning=False)
        # Moves that are under way here are not waited for.
        state.learner = self._state.learned.without_due()
        return self._of(state, self._events, self._mover or "foreground")

    def _do(
        self, rule: Callable[..., Event | None], at: At, request_id: str | None, **given: Any
    ) -> Any:
        """Follow a rule and record its event; a request that was answered gets that answer."""
        time, request = _read_time(at), None
        if request_id is not None:
            remedy = "Use a shorter one, or leave it out."
            request_id = read_name("a request id", "request_id", request_id, remedy)
            request = events.describe_request(rule.__name__, given)
            if request_id in self._state.requests:
                return self._answered(request_id, request)
        if rule is rules.add_arm:
            rule(self._state, **given)
            self.catch_up(at=at)
        else:
            self._adopt(time)
        event = rule(self._state, **given)
        if event is None and request_id is not None:
            is_decision = rule is rules.decide
            event = events.Answered(self._open_decision(given["user"]) if is_decision else None)
        if event is None:
            return None
        if isinstance(event, events.LEARNED):
            self._raise_failure()
        return self._record(replace(event, at=time, request_id=request_id, request=request))

    def _record(self, event: Event, moved: Moved | None = None) -> Event:
        numbered = replace(event, seq=self._state.num_events)
        self._state.apply(numbered, moved)
        self._events.append(numbered)
        self._start_moves()
        return numbered

    def _answered(self, request_id: str, request: str) -> Event:
        """Look up the answer to a request; refuse another call with its id."""
        event = self._state.requests[request_id]
        if event.request != request:
            raise ConflictError(
                f"Expected a new request id; got request_id={brief(request_id)}, which event "
                f"{event.seq} answered with other arguments. Use an id only for the same call."
            )
        return event

    def _open_decision(self, user: str) -> str:
        return self._state.open[rules.find_user(self._state, user)].decision

    def _adopt(self, at: str | None, is_waiting: bool = False) -> None:
        """Take over moves that are done, and the next ones if they are waited for."""
        while self._moving is not None and (is_waiting or self._moving.result.done()):
            update, result = self._moving
            # A wait that is interrupted leaves the moves under way.
            error = result.exception()
            self._moving = None
            if error is None:
                try:
                    adopted = events.MovesAdopted(update, is_failed=False, at=at)
                    self._record(adopted, result.result())
                except Exception as refused:
                    error = refused
            if error is not None:
                self._failure = Failure(update, error)
                self._record(events.MovesAdopted(update, is_failed=True, at=at))

    def _raise_failure(self) -> None:
        """Raise, once, what went wrong with moves."""
        failed, self._failure = self._failure, None
        if failed is None:
            return
        if not isinstance(failed.error, CocoError):
            raise failed.error
        raise NumericalError(
            f"Expected moves in the background to succeed; got update={failed.update}, which "
            f"failed: {failed.error} The particles stay reweighted. This call did nothing: repeat "
            "it."
        ) from failed.error

    def _start_moves(self) -> None:
        """Have moves computed that are due, and no others.

        A mover that refuses them counts as one that fails.
        """
        due = self._state.learned.due
        if (
            due is not None
            and self._moving is not None
            and self._moving.update != due.update.number
        ):
            # A removal came since. A running computation ends unheard; one that waits never starts.
            self._moving.result.cancel()
            self._moving = None
        if due is None or self._moving is not None or self._mover is None:
            return
        recipe, update = recipe_of(self._state.design), due.update
        try:
            result = self._mover.submit(recipe, update.rng_key, due.state, update.change)
        except Exception as error:
            result = Future()
            result.set_exception(error)
        self._moving = Moving(update.number, result)

    def _announce_model(self) -> None:
        model = self.describe().model
        _LOG.info("Population model: %s, since %s.", model.name, model.reason)


def _mode(moves: Any) -> MoveMode:
    """Read where particles are moved; refuse what is neither a mode nor a mover."""
    if isinstance(moves, str) and moves in ("foreground", "background"):
        return "background" if moves == "background" else "foreground"
    if callable(getattr(moves, "submit", None)) and not isinstance(moves, type):
        return "background"
    raise ConfigurationError(
        "Expected moves in ('foreground', 'background'), or a ProcessMover; got "
        f"moves={brief(moves)}. Choose one of these."
    )


def _read_time(at: Any) -> str | None:
    """Read when something happened; refuse what is neither a time with its zone nor a text."""
    if at is None:
        return None
    if isinstance(at, datetime) and at.tzinfo is not None:
        return at.isoformat()
    if is_name(at):
        return str(plain_name(at))
    raise InputError(
        f"Expected a time with its zone, or a text; got at={brief(at)}. Write for example "
        "datetime.now(UTC), or leave it out."
    )
