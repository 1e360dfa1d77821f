"""Folds the events of a study into its state, and refuses those that no study records."""

from collections.abc import Callable, Iterable
from typing import Any

from cocobandits.errors import CocoError, ConflictError
from cocobandits.study import events, rules
from cocobandits.study.events import Event
from cocobandits.study.state import StudyState

Look = Callable[[StudyState, Event], None]


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
    for number, event in enumerate(listed(past)):
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


# What a rule or the fold raises for an event that cannot be.
_REFUSED = (CocoError, ValueError, TypeError, KeyError, IndexError, AttributeError)


def _start(event: Event, is_learning: bool) -> StudyState:
    if not isinstance(event, events.Started) or event.seq != 0:
        raise ValueError("the first is no start")
    return StudyState.start(event, is_learning)


def _check_follows(state: StudyState, event: Event) -> None:
    """Refuse an event that the rules would not have made."""
    if event.request_id is not None and event.request_id in state.requests:
        raise ValueError(f"request_id={event.request_id!r} was answered before")
    if isinstance(event, events.Decided):
        _check_decided(state, event)
        return
    rule = _RULES.get(type(event))
    if rule is not None and _content(rule(state, event)) != _content(event):
        raise ValueError("the call that it records would not have been accepted")


def _context(state: StudyState, event: Any) -> dict[str, Any]:
    names = (feature.name for feature in state.design.features)
    return dict(zip(names, event.context, strict=True))


# Makes an event again from what it says.
_RULES: dict[type[Event], Callable[[StudyState, Any], Event | None]] = {
    events.Enrolled: lambda state, each: rules.enrol(state, each.user, _context(state, each)),
    events.ContextAdded: lambda state, each: rules.update_context(
        state, each.user, _context(state, each)
    ),
    events.Rewarded: lambda state, each: rules.reward(state, each.decision, each.value),
    events.Observed: lambda state, each: rules.observe(state, each.user, each.arm, each.value),
    events.Corrected: lambda state, each: rules.correct(state, each.source, each.value),
    events.Closed: lambda state, each: rules.close(state, each.decision),
    events.Withdrawn: lambda state, each: rules.withdraw(state, each.user),
    events.ArmAdded: lambda state, each: rules.add_arm(state, each.arm),
    events.ArmChanged: lambda state, each: rules.change_arm(
        state, each.arm, each.status, each.reason
    ),
}


def _check_decided(state: StudyState, event: events.Decided) -> None:
    """Refuse a decision that could not be made; its probabilities are not computed."""
    active = {state.design.arms[number] for number in state.active}
    if rules.find_user(state, event.user) in state.open:
        raise ValueError("the user has an open decision")
    if not event.eligible or not {event.arm} <= {*event.eligible} <= active:
        raise ValueError("its arms are not active")
    numbers = (*event.weights, *event.probabilities, event.draw)
    if not all(0 <= number <= 1 + _ROUNDING for number in numbers):
        raise ValueError("its numbers are no probabilities")


def _content(event: Event | None) -> Any:
    """Return what an event says, without its number, time and request."""
    plain = None if event is None else events.to_plain(event)
    return plain and {name: each for name, each in plain.items() if name not in _STAMP}


_ROUNDING = 1e-9
_STAMP = ("seq", "at", "request_id", "request")
