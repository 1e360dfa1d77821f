"""Everything that can happen in a study, one immutable record each.

The events of a study are all that is true of it: `StudyState.apply` turns them into the rest. Each
carries its number, when it happened as its caller says, and the id of the request it answered.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType, UnionType
from typing import Any, Literal, get_args, get_origin

from cocobandits.checks import freeze, is_name, is_number, is_truth, is_utf8, plain_name
from cocobandits.errors import brief
from cocobandits.policies.description import PolicySettings
from cocobandits.study.context import ContextValue
from cocobandits.study.design import StudyDesign

ArmStatus = Literal["active", "suspended", "withdrawn"]
MoveMode = Literal["foreground", "background"]


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened.

    Attributes:
        seq: its number in the study, from zero.
        at: when, in the caller's words; None if that was not said.
        request_id: of the request that it answered; None if it had none.
        request: the call of that request with its arguments, as JSON.
    """

    seq: int = -1
    at: str | None = None
    request_id: str | None = None
    request: str | None = None


@dataclass(frozen=True)
class Started(Event):
    """The study started: its design, and where particles are moved."""

    design: StudyDesign
    moves: MoveMode


@dataclass(frozen=True)
class Enrolled(Event):
    """A user enrolled, with a value or None for every feature."""

    user: str
    context: tuple[ContextValue, ...]


@dataclass(frozen=True)
class ContextAdded(Event):
    """Values became known that were missing; None for every other feature."""

    user: str
    context: tuple[ContextValue, ...]


@dataclass(frozen=True)
class Decided(Event):
    """An arm was chosen for a user; `Decision` says what the fields are.

    Weights and probabilities are of every arm there was, in their order.
    """

    decision: str
    user: str
    arm: str
    eligible: tuple[str, ...]
    weights: tuple[float, ...]
    probabilities: tuple[float, ...]
    draw: float


@dataclass(frozen=True)
class Answered(Event):
    """A request with an id changed nothing; a decision that was open answered it, if one did."""

    decision: str | None


@dataclass(frozen=True)
class Rewarded(Event):
    """The first reward of a decision."""

    decision: str
    value: float


@dataclass(frozen=True)
class Observed(Event):
    """A reward that did not come from a decision of this study."""

    observation: str
    user: str
    arm: str
    value: float


@dataclass(frozen=True)
class Corrected(Event):
    """The reward of a decision or observation was replaced, or taken back if None."""

    source: str
    value: float | None


@dataclass(frozen=True)
class Closed(Event):
    """The study stopped waiting for the reward of a decision."""

    decision: str


@dataclass(frozen=True)
class Withdrawn(Event):
    """A user withdrew."""

    user: str


@dataclass(frozen=True)
class ArmAdded(Event):
    """An arm was added, the last."""

    arm: str


@dataclass(frozen=True)
class ArmChanged(Event):
    """An arm has another status."""

    arm: str
    status: ArmStatus
    reason: str


@dataclass(frozen=True)
class MovesAdopted(Event):
    """Moves in the background replaced the particles in use, or were given up.

    Attributes:
        update: number of the update that asked for them.
        is_failed: whether they failed; the particles stay reweighted.
    """

    update: int
    is_failed: bool


@dataclass(frozen=True)
class MovesChanged(Event):
    """Particles are moved elsewhere from here on."""

    moves: MoveMode


# Those that change what is learned of a user.
LEARNED = (Rewarded, Observed, Corrected, ContextAdded, Withdrawn)
KINDS: Mapping[str, type[Event]] = MappingProxyType(
    {kind.__name__: kind for kind in Event.__subclasses__()}
)


def to_plain(event: Event) -> dict[str, Any]:
    """Write an event as values that JSON can hold."""
    values = {each.name: getattr(event, each.name) for each in fields(event)}
    if isinstance(event, Started):
        values["design"] = event.design.to_plain()
    return {"event": type(event).__name__} | values


def from_plain(item: Any, policies: Iterable[type[PolicySettings]] = ()) -> Event:
    """Read what `to_plain` wrote.

    Raises:
        KeyError, TypeError, ValueError, CocoError: it did not write that.
    """
    values = dict(item)
    kind = KINDS[values.pop("event")]
    if kind is Started:
        values["design"] = StudyDesign.from_plain(values["design"], policies)
    event = kind(**{each.name: freeze(values[each.name]) for each in fields(kind)})
    check_fields(event)
    return event


def check_fields(event: Event) -> None:
    """Refuse an event with a field of another type than its class declares, or a stamp of no call.

    Raises:
        ValueError: there is one.
    """
    for each in fields(event):
        _check(each.name, getattr(event, each.name), each.type)
    for name in ("at", "request_id"):
        value = getattr(event, name)
        if value is not None and not is_name(value):
            raise ValueError(f"{name}={brief(value)}")
    is_whole = event.request is None or (is_utf8(event.request) and json.loads(event.request))
    if not is_whole or (event.request is None) != (event.request_id is None):
        raise ValueError(f"request={brief(event.request)}")


def describe_request(call: str, given: Mapping[str, Any]) -> str:
    """Write a call as JSON, alike for all spellings of the same arguments.

    A number is a number whatever its type, missing features are missing, and arms have no order.
    """
    return json.dumps([call, {name: _canonical(value) for name, value in given.items()}])


def _canonical(value: Any) -> Any:
    if isinstance(value, Mapping):
        known = {str(_plain(name)): _plain(each) for name, each in value.items()}
        return {name: known[name] for name in sorted(known) if known[name] is not None}
    if isinstance(value, list | tuple | set | frozenset):
        return sorted(map(_plain, value), key=json.dumps)
    return _plain(value)


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold; one that no call accepts as text."""
    if value is None or isinstance(value, str):
        return plain_name(value)
    if is_truth(value):
        return bool(value)
    return float(value) if is_number(value) else brief(value)


def _check(name: str, value: Any, kind: Any) -> None:
    """Refuse a value that is not of the kind its field declares."""
    origin, among = get_origin(kind), get_args(kind)
    if origin is tuple:
        is_right = isinstance(value, tuple)
        for each in value if is_right else ():
            _check(name, each, among[0])
    elif origin is Literal:
        is_right = isinstance(value, str) and value in among
    elif origin is UnionType:
        is_right = type(value) in among
    else:
        is_right = type(value) is kind
    if not is_right:
        raise ValueError(f"{name}={value!r}")
