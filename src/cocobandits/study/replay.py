"""Folds the events of a study into its state; refuses those that no study records, and verifies."""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from cocobandits.errors import CocoError, ConflictError
from cocobandits.study import events, rules
from cocobandits.study.events import Event
from cocobandits.study.state import StudyState

Look = Callable[[StudyState, Event], None]

# What a rule or the fold raises for an event that cannot be.
_REFUSED = (CocoError, ValueError, TypeError, KeyError, IndexError, AttributeError)
_COMPARED = ("decision", "arm", "eligible", "weights", "probabilities", "draw")
_ROUNDING = 1e-9
_STAMP = ("seq", "at", "request_id", "request")
_RULES: Mapping[type[Event], Callable[..., Event | None]] = MappingProxyType(
    {
        events.Enrolled: rules.enrol,
        events.ContextAdded: rules.update_context,
        events.Rewarded: rules.reward,
        events.Observed: rules.observe,
        events.Corrected: rules.correct,
        events.Closed: rules.close,
        events.Withdrawn: rules.withdraw,
        events.ArmAdded: rules.add_arm,
        events.ArmChanged: rules.change_arm,
    }
)


def fold(past: Iterable[Event], is_learning: bool = True, look: Look | None = None) -> StudyState:
    """Rebuild the state of a study from its events.

    Args:
        past: all events, from the start.
        is_learning: whether to learn; without it the state has no learner.
        look: called before each event but the first is applied.

    Raises:
        ConflictError: they are not the events of a study.
    """
    state = None
    for number, event in enumerate(past):
        try:
            events.check_fields(event)
            if state is None:
                state = _start(event, is_learning)
                continue
            _check_follows(state, event)
            if look is not None:
                look(state, event)
            state.apply(event)
        except _REFUSED as error:
            raise ConflictError(
                f"Expected the events of a study in their order; got event={number}, a "
                f"{type(event).__name__}, which cannot follow ({error}). Give all events as the "
                "study recorded them."
            ) from error
    if state is None:
        raise ConflictError("Expected the events of a study; got none. Give all of them.")
    return state


def listed(past: Any) -> list[Event]:
    """List events.

    Raises:
        ConflictError: they are none.
    """
    try:
        return list(past)
    except TypeError as error:
        raise ConflictError(
            f"Expected the events of a study; got {type(past).__name__}. Give for example "
            "study.events."
        ) from error


class Difference(NamedTuple):
    """A field of a decision that its earlier events do not lead to.

    Attributes:
        seq: number of the event.
        field: of the event.
        recorded, derived: its two values.
    """

    seq: int
    field: str
    recorded: Any
    derived: Any


def verify_events(past: Iterable[Event]) -> tuple[Difference, ...]:
    """List what differs, bit for bit, from decisions derived from the design and earlier events.

    Neither probabilities nor particles that were stored are used.

    Raises:
        ConflictError: they are not the events of a study.
    """
    found: list[Difference] = []

    def look(state: StudyState, event: Event) -> None:
        if not isinstance(event, events.Decided):
            return
        arms = tuple(state.design.arms.index(arm) for arm in event.eligible)
        derived = rules.draw_decision(state, state.users.numbers[event.user], arms)
        for name in _COMPARED:
            pair = getattr(event, name), getattr(derived, name)
            if pair[0] != pair[1]:
                found.append(Difference(event.seq, name, *pair))

    fold(past, look=look)
    return tuple(found)


def _start(event: Event, is_learning: bool) -> StudyState:
    if not isinstance(event, events.Started) or event.seq != 0:
        raise ValueError("the first is no start")
    return StudyState(event, is_learning)


def _check_follows(state: StudyState, event: Event) -> None:
    """Refuse an event that the rules would not have made."""
    if event.request_id is not None and event.request_id in state.requests:
        raise ValueError(f"request_id={event.request_id!r} was answered before")
    if isinstance(event, events.Decided):
        _check_decided(state, event)
    elif isinstance(event, events.Answered):
        _check_answered(state, event)
    elif type(event) in _RULES:
        made = _RULES[type(event)](state, **_arguments(state, event))
        if made is None or _content(made) != _content(event):
            raise ValueError("the call that it records would not have been accepted")


def _content(event: Event) -> dict[str, Any]:
    """List what an event says, without its number, time and request."""
    return {name: value for name, value in vars(event).items() if name not in _STAMP}


def _arguments(state: StudyState, event: Event) -> dict[str, Any]:
    """List the arguments of the call that an event records: its content, but for a new id."""
    given = _content(event)
    given.pop("observation", None)
    if "context" in given:
        names = (feature.name for feature in state.design.features)
        given["context"] = dict(zip(names, given["context"], strict=True))
    return given


def _check_answered(state: StudyState, event: events.Answered) -> None:
    """Refuse an answer to no request, or with a decision that was not open."""
    open_now = {None, *(made.decision for made in state.open.values())}
    if event.request_id is None or event.decision not in open_now:
        raise ValueError(f"decision={event.decision!r}")


def _check_decided(state: StudyState, event: events.Decided) -> None:
    """Refuse a decision that could not be made; its probabilities are not computed."""
    active = {state.design.arms[number] for number in state.active}
    if rules.find_user(state, event.user) in state.open:
        raise ValueError("the user has an open decision")
    if event.decision != rules.next_decision(state):
        raise ValueError(f"decision={event.decision!r}")
    if not event.eligible or not {event.arm} <= {*event.eligible} <= active:
        raise ValueError("its arms are not active")
    numbers = (*event.weights, *event.probabilities, event.draw)
    num_arms = len(state.design.arms)
    is_complete = len(event.weights) == len(event.probabilities) == num_arms
    if not is_complete or not all(0 <= number <= 1 + _ROUNDING for number in numbers):
        raise ValueError("its numbers are no probabilities")
