"""Moves beside the study: particles are rejuvenated while rewards and decisions go on.

Owns the thread that waits for them, what has happened since it started, and the moment at which its
particles replace those in use. Every update is a reweighting first. Where it asks for moves, the
thread has the whole update computed from the particles before it (`moving_process.py`), and carries
the result through what came after, in the same order and by reweighting alone. The first update on
that course that asks for moves again starts the next thread. So the course is that of a study that
waits for every move, bit for bit; only the particles that decide meanwhile are other ones.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from cocobandits.errors import CocoError, ConfigurationError, ConflictError, NumericalError
from cocobandits.inference.smc import SmcInfo
from cocobandits.models.histories import Change, UserTable
from cocobandits.policies.base import Policy
from cocobandits.types import RngKey


class Adoption(NamedTuple):
    """When the moves of an update were adopted, or given up because they failed.

    Attributes:
        update: number of the update that asked for them.
        num_updates, num_decisions: how many updates and decisions there had been.
    """

    update: int
    num_updates: int
    num_decisions: int


Moves = Literal["foreground", "background"] | Sequence[Adoption]


class Update(NamedTuple):
    """A change of a user's statistics or context."""

    number: int
    rng_key: RngKey
    change: Change


class Enrolment(NamedTuple):
    """A new user, the last of a table."""

    users: UserTable


Event = Update | Enrolment
# What `Policy.update` computes, wherever that is done.
Mover = Callable[[RngKey, Any, Change], tuple[Any, SmcInfo | None]]


class _Course(NamedTuple):
    """Particles after moves, carried through events.

    Attributes:
        state: of the policy, after `num_events` events.
        due: the first event on the way that asks for moves again, and the state before it.
    """

    state: Any
    num_events: int = 0
    due: tuple[int, Any] | None = None


def plan_for(moves: Moves) -> tuple[Adoption, ...] | None:
    """Read when moves are to be adopted; None if that is not laid down.

    Raises:
        ConfigurationError: it is neither a mode nor a record of adoptions.
    """
    if isinstance(moves, str) and moves in ("foreground", "background"):
        return None
    is_record = isinstance(moves, list | tuple) and all(
        isinstance(entry, list | tuple)
        and len(entry) == len(Adoption._fields)
        and all(type(number) is int for number in entry)
        for entry in moves
    )
    if not is_record:
        raise ConfigurationError(
            "Expected moves in ('foreground', 'background'), or the adoptions of a study; got "
            f"moves={moves!r}. Choose one of these."
        )
    return tuple(Adoption(*entry) for entry in moves)


class BackgroundMoves:
    """At most one thread that waits for moves, and when its work was adopted.

    Args:
        policy: whose particles are moved.
        move: computes an update with all its moves.
        adoptions: the record, which is added to.
        plan: the record to repeat; None adopts moves as soon as they are done.
    """

    def __init__(
        self,
        policy: Policy[Any],
        move: Mover,
        adoptions: list[Adoption],
        plan: Sequence[Adoption] | None,
    ) -> None:
        self._policy = policy
        self._move = move
        self._adoptions = adoptions
        self._plan = plan
        self._job: _Job | None = None
        self._failure: _Job | None = None

    @property
    def is_moving(self) -> bool:
        """Whether the thread is at work."""
        return self._job is not None and not self._job.is_done

    def enrol(self, users: UserTable) -> None:
        """Note a user who was added to the table."""
        if self._job is not None:
            self._job.events.append(Enrolment(users))

    def learn(self, state: Any, update: Update) -> tuple[Any, SmcInfo | None]:
        """Reweight the state in use, and have particles moved if that is due.

        Raises:
            NumericalError: no particle can explain the update; nothing was changed.
        """
        after, info, is_due = _reweigh(self._policy, state, update)
        if self._job is not None:
            self._job.events.append(update)
        elif is_due:
            self._job = _Job(self._policy, self._move, state, update, [])
        return after, info

    def adopt(
        self, num_updates: int, num_decisions: int, *, is_waiting: bool
    ) -> tuple[Any, SmcInfo | None] | None:
        """Give the state and diagnostics of moves that are done, or else None.

        Raises:
            ConflictError: the calls are not those of the record to repeat.
        """
        job = self._job
        is_time = self._is_time(num_updates, num_decisions)
        if job is None or not (is_waiting or is_time):
            return None
        if not is_time and self._plan is not None and len(self._adoptions) < len(self._plan):
            raise ConflictError(
                f"Expected the moves of update={job.update.number} to be adopted later, as the "
                f"record says; got a call that waits for them at {num_updates, num_decisions} "
                "updates and decisions. Repeat the calls of the study that left the record."
            )
        course = job.finish(self._policy)
        self._job = None
        self._adoptions.append(Adoption(job.update.number, num_updates, num_decisions))
        if course is None:
            self._failure = job
            return None
        if course.due is not None:
            self._job = job.next(self._policy, self._move, *course.due)
        return course.state, job.info

    def raise_failure(self) -> None:
        """Raise, once, what went wrong with moves.

        Raises:
            NumericalError: moves failed; any other error is raised as it is.
        """
        job, self._failure = self._failure, None
        if job is None or job.error is None:
            return
        if not isinstance(job.error, CocoError):
            raise job.error
        raise NumericalError(
            f"Expected moves in the background to succeed; got update={job.update.number}, which "
            f"failed: {job.error} The particles stay reweighted. This call did nothing: repeat it."
        ) from job.error

    def _is_time(self, num_updates: int, num_decisions: int) -> bool:
        if self._plan is None:
            return self._job is not None and self._job.is_done
        if len(self._adoptions) >= len(self._plan):
            return False
        planned = self._plan[len(self._adoptions)]
        now = (num_updates, num_decisions)
        if planned.num_updates < num_updates or planned.num_decisions < num_decisions:
            raise ConflictError(
                f"Expected the calls of the study that is repeated, with {planned}; got {now} "
                "updates and decisions without it. Repeat its calls in their order."
            )
        number = None if self._job is None else self._job.update.number
        return planned == (number, *now)


class _Job:
    """One update in a thread of its own, and what has happened since.

    The thread knows nothing of the study, and ends by itself. It is no daemon: an interpreter that
    ends while JAX computes in a daemon thread is aborted.
    """

    def __init__(
        self, policy: Policy[Any], move: Mover, state: Any, update: Update, events: list[Event]
    ) -> None:
        self.update = update
        self.events = events  # the thread reads while the study appends, and nobody removes
        self.info: SmcInfo | None = None
        self.error: BaseException | None = None
        self._course: _Course | None = None
        self._thread = threading.Thread(
            target=self._run,
            args=(policy, move, state),
            name=f"moves-of-update-{update.number}",
            daemon=False,  # nor if the thread that calls is one
        )
        self._thread.start()

    @property
    def is_done(self) -> bool:
        """Whether the thread has ended."""
        return not self._thread.is_alive()

    def finish(self, policy: Policy[Any]) -> _Course | None:
        """Wait for the thread, and add what came after its last look; None if anything failed."""
        self._thread.join()
        if self._course is not None:
            self._go_on(policy, self._course)
        return None if self.error is not None else self._course

    def next(self, policy: Policy[Any], move: Mover, position: int, state: Any) -> "_Job":
        """Start the update at a position of the events, on the state before it."""
        update = self.events[position]
        assert isinstance(update, Update)
        return _Job(policy, move, state, update, self.events[position + 1 :])

    def _run(self, policy: Policy[Any], move: Mover, state: Any) -> None:
        _, key, change = self.update
        try:
            moved, self.info = move(key, state, change)
        except BaseException as error:  # raised again in the thread of the study
            self.error = error
        else:
            self._go_on(policy, _Course(moved))

    def _go_on(self, policy: Policy[Any], course: _Course) -> None:
        try:
            while course.num_events < len(self.events):
                course = _follow(policy, course, self.events[course.num_events])
        except BaseException as error:
            self.error = error
        self._course = course


def _follow(policy: Policy[Any], course: _Course, event: Event) -> _Course:
    if isinstance(event, Enrolment):
        return course._replace(
            state=policy.enrol(course.state, event.users), num_events=course.num_events + 1
        )
    state, _, is_due = _reweigh(policy, course.state, event)
    due = (course.num_events, course.state) if is_due and course.due is None else course.due
    return _Course(state, course.num_events + 1, due)


def _reweigh(policy: Policy[Any], state: Any, update: Update) -> tuple[Any, SmcInfo | None, bool]:
    return policy.reweigh(update.rng_key, state, update.change)
