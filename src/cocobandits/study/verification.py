"""Every decision of a study derived again from its events alone, and compared."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from cocobandits.study.events import Decided, Event
from cocobandits.study.replay import fold
from cocobandits.study.rules import draw_decision
from cocobandits.study.state import StudyState

_COMPARED = ("decision", "arm", "eligible", "weights", "probabilities", "draw")


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


def verify_events(events: Iterable[Event]) -> tuple[Difference, ...]:
    """List what differs, bit for bit, from decisions derived from the design and earlier events.

    Neither probabilities nor particles that were stored are used.

    Raises:
        ConflictError: they are not the events of a study.
    """
    found: list[Difference] = []

    def look(state: StudyState, event: Event) -> None:
        if not isinstance(event, Decided):
            return
        arms = tuple(state.design.arms.index(arm) for arm in event.eligible)
        derived = draw_decision(state, state.users.number(event.user), arms)
        for name in _COMPARED:
            pair = getattr(event, name), getattr(derived, name)
            if pair[0] != pair[1]:
                found.append(Difference(event.seq, name, *pair))

    fold(events, look=look)
    return tuple(found)
