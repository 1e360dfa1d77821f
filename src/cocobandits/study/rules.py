"""What may happen in a study: each rule checks a call and computes its event; None changes nothing.

A rule reads the state and never changes it. Ids of users are personal data: no message lists those
of others.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cocobandits.checks import MOST_CHARACTERS, is_name, is_utf8, plain_name
from cocobandits.errors import ConflictError, InputError, UnknownNameError, brief
from cocobandits.study.context import ContextValues, read_context, show_context
from cocobandits.study.design import check_floor_sum
from cocobandits.study.events import (
    ArmAdded,
    ArmChanged,
    ArmStatus,
    Closed,
    ContextAdded,
    Corrected,
    Decided,
    Enrolled,
    Observed,
    Rewarded,
    Withdrawn,
)
from cocobandits.study.state import StudyState, make_id
from cocobandits.study.users import are_equal
from cocobandits.types import FloatVector, Truths

_MOST_REASON = 2000
# First letter of the ids of observations.
_OBSERVED = "o"


def find_user(state: StudyState, user: str) -> int:
    """Return the number of a user who takes part.

    Raises:
        UnknownNameError: the user is not enrolled, or has withdrawn.
    """
    name = plain_name(user)
    if name not in state.users:
        raise UnknownNameError("user", user, None, "Enrol the user first.")
    if name in state.users.withdrawn:
        remedy = "This user has withdrawn: enrol the person again under another id."
        raise UnknownNameError("user", user, None, remedy)
    return state.users.number(name)


def enrol(state: StudyState, user: str, context: ContextValues | None) -> Enrolled | None:
    """Enrol a user; the same user with the same context again is harmless.

    Raises:
        InputError: the context or the user's name is refused.
        UnknownNameError: a feature was never declared.
        ConflictError: the user is enrolled with another context, or has withdrawn.
    """
    features, name = state.design.features, plain_name(user)
    read = read_context(features, {} if context is None else context)
    if not is_name(name):
        raise InputError(
            f"Expected a user id of 1 to {MOST_CHARACTERS} characters; got user={brief(user)}. "
            "Use a shorter one, or give one."
        )
    if name in state.users.withdrawn:
        raise ConflictError(
            f"Expected a new user; got user={user!r}, who has withdrawn. Enrol the person again "
            "under another id."
        )
    if name not in state.users:
        return Enrolled(name, tuple(show_context(features, read).values()))
    number = state.users.number(name)
    was_missing = np.isnan(read) & state.users.is_late[number]
    if not np.all(are_equal(read, state.users.contexts[number]) | was_missing):
        raise ConflictError(
            f"Expected the context that user={user!r} enrolled with; got "
            f"{show_context(features, read)}. Enrol a second person under another id, or give late "
            f"values by update_context({user!r}, ...)."
        )
    return None


def update_context(state: StudyState, user: str, context: ContextValues) -> ContextAdded | None:
    """Add values that were missing; None if they are known.

    Raises:
        InputError: a value is refused.
        ConflictError: another value was recorded.
        UnknownNameError: the user is not enrolled, or a feature was never declared.
    """
    features, number = state.design.features, find_user(state, user)
    known, late = state.users.contexts[number], read_context(features, context)
    is_other = ~np.isnan(late) & ~np.isnan(known) & (late != known)
    if is_other.any():
        feature = features[int(np.argmax(is_other))]
        recorded = feature.show(float(known[np.argmax(is_other)]))
        raise ConflictError(
            f"Expected values that were missing so far; got {feature.name}="
            f"{context[feature.name]!r} for user={user!r}, for which {recorded!r} is recorded. "
            "Enrol a second person under another id, or withdraw this user."
        )
    added = np.where(np.isnan(known), late, np.nan)
    if np.isnan(added).all():
        return None
    return ContextAdded(state.users.names[number], tuple(show_context(features, added).values()))


def decide(state: StudyState, user: str, eligible: Sequence[str] | None) -> Decided | None:
    """Draw an arm for a user; None if a decision is open.

    Raises:
        InputError: none of the eligible arms is active, or they are no list.
        UnknownNameError: the user is not enrolled, or an arm is not known.
        NumericalError: the policy's probabilities are not a distribution.
        ConflictError: no arm is active, or the arm of the open decision is not eligible.
    """
    number, names = find_user(state, user), _read_eligible(state, eligible)
    if number not in state.open:
        return draw_decision(state, number, _available(state, names))
    made = state.decisions[state.open[number]]
    if names is not None and made.arm not in names:
        raise ConflictError(
            f"Expected the arm of the open decision to be eligible; got arm={made.arm!r} of "
            f"decision={made.decision!r}, which is not among {sorted(names)}. Use "
            f"close({made.decision!r}) first if that arm will not be given."
        )
    return None


def check_can_decide(state: StudyState, user: str, eligible: Sequence[str] | None) -> None:
    """Refuse what `decide` would refuse, but for numerical trouble.

    Raises:
        InputError, UnknownNameError, ConflictError: as `decide` does.
    """
    names = _read_eligible(state, eligible)
    if find_user(state, user) in state.open:
        decide(state, user, eligible)
    else:
        _available(state, names)


def draw_decision(state: StudyState, user: int, arms: tuple[int, ...]) -> Decided:
    """Draw one of some arms for a user, from the state and the number of the decision alone.

    Raises:
        NumericalError: the policy's probabilities are not a distribution.
    """
    design, number = state.design, len(state.decisions)
    is_available = np.isin(np.arange(len(design.arms)), arms)
    weights = state.learned.weights(user, arms)
    probabilities = raise_to_floors(weights, design.floors, is_available)
    draw = state.learned.draw(number)
    return Decided(
        make_id(number),
        state.users.names[user],
        design.arms[choose_arm(probabilities, draw)],
        tuple(design.arms[arm] for arm in arms),
        tuple(map(float, weights)),
        tuple(map(float, probabilities)),
        draw,
    )


def reward(state: StudyState, decision_id: str, value: float) -> Rewarded | None:
    """Record the first reward of a decision; the same value again is harmless.

    Raises:
        InputError: the value is refused.
        ConflictError: another value was recorded, or the user has withdrawn.
        UnknownNameError: there is no such decision.
    """
    number = _find_live(state, decision_id)
    state.design.standardise(value)
    status, known = state.statuses[number], state.rewards.get(decision_id)
    if known is not None and known.value == float(value):
        return None
    if status in ("rewarded", "retracted"):
        raise ConflictError(
            f"Expected a decision without reward; got decision={decision_id!r}, "
            f"{_describe(state, number)}. Use correct({decision_id!r}, {value!r}) to replace it."
        )
    return Rewarded(make_id(number), float(value))


def observe(state: StudyState, user: str, arm: str, value: float) -> Observed:
    """Record a reward that did not come from a decision of this study.

    Raises:
        InputError: the value is refused.
        UnknownNameError: the user is not enrolled, or the arm is not known.
    """
    number, name = find_user(state, user), _find_arm(state, arm)
    state.design.standardise(value)
    return Observed(
        f"{_OBSERVED}{state.num_observed}", state.users.names[number], name, float(value)
    )


def correct(state: StudyState, source: str, value: float | None) -> Corrected | None:
    """Replace a reward by another value, or take it back; the value it has is harmless.

    Raises:
        InputError: the value is refused.
        ConflictError: there is nothing to correct yet, or the user has withdrawn.
        UnknownNameError: there is no such decision or observation.
    """
    known = state.rewards.get(source) if isinstance(source, str) else None
    if known is None or not source.startswith(_OBSERVED):
        number = _find_live(state, source)
    else:
        _check_here(state, known.user, source)
    if value is not None:
        state.design.standardise(value)
    if known is None:
        raise ConflictError(
            f"Expected a decision with a reward; got decision={source!r}, "
            f"{_describe(state, number)}. Use reward({source!r}, value) first."
        )
    wanted = None if value is None else float(value)
    return None if wanted == known.value else Corrected(str(source), wanted)


def close(state: StudyState, decision_id: str) -> Closed:
    """Stop waiting for a reward.

    Raises:
        ConflictError: the decision is not open, or the user has withdrawn.
        UnknownNameError: there is no such decision.
    """
    number = _find_live(state, decision_id)
    if state.statuses[number] != "open":
        raise ConflictError(
            f"Expected an open decision; got decision={decision_id!r}, "
            f"{_describe(state, number)}. There is nothing to close."
        )
    return Closed(make_id(number))


def withdraw(state: StudyState, user: str) -> Withdrawn:
    """Withdraw a user.

    Raises:
        UnknownNameError: the user is not enrolled.
    """
    return Withdrawn(state.users.names[find_user(state, user)])


def change_arm(
    state: StudyState, arm: str, status: ArmStatus, reason: str = ""
) -> ArmChanged | None:
    """Give an arm another status; the one it has is harmless.

    Raises:
        InputError: the reason is no text.
        ConflictError: the arm was withdrawn for good.
        UnknownNameError: there is no such arm.
    """
    name = _find_arm(state, arm)
    if not isinstance(reason, str) or not is_utf8(reason) or len(reason) > _MOST_REASON:
        raise InputError(
            f"Expected a text in UTF-8 of at most {_MOST_REASON:,} characters; got "
            f"reason={brief(reason)}. Say why, or leave it out."
        )
    if state.arms[name] == status:
        return None
    if state.arms[name] == "withdrawn":
        raise ConflictError(
            f"Expected an arm that can come back; got arm={arm!r}, which was withdrawn for good. "
            "Add an arm under another name."
        )
    return ArmChanged(name, status, plain_name(reason))


def add_arm(state: StudyState, arm: str) -> ArmAdded:
    """Add an arm, the last.

    Raises:
        InputError: the name is refused.
        ConflictError: there is such an arm.
        ConfigurationError: floors would leave nothing to choose with.
    """
    name = plain_name(arm)
    if not is_name(name):
        raise InputError(
            f"Expected a name of 1 to {MOST_CHARACTERS} characters; got name={brief(arm)}. "
            "Give the arm a name."
        )
    if name in state.arms:
        raise ConflictError(
            f"Expected a new arm; got name={arm!r}, which is {state.arms[name]}. Use another "
            "name, or activate it if it is suspended."
        )
    floors = state.design.with_arm(name, len(state.decisions)).floors
    pairs = zip(floors, (*state.arms.values(), "active"), strict=True)
    check_floor_sum(tuple(floor for floor, status in pairs if status != "withdrawn"))
    return ArmAdded(name)


def decision_number(state: StudyState, decision_id: Any) -> int:
    """Return the number of a decision.

    Raises:
        UnknownNameError: there is no such decision.
    """
    number = state.find_decision(decision_id)
    if number is None:
        last = [made.decision for made in state.decisions[-1:]]
        remedy = "Use the id that decide() returned (the last is shown)."
        raise UnknownNameError("decision", decision_id, last, remedy)
    return number


def raise_to_floors(
    weights: FloatVector, floors: Sequence[float], is_available: Truths
) -> FloatVector:
    """Compute p = f + (1 - Σf) w over the arms that can be chosen; the others have nothing."""
    reserved = np.where(is_available, np.asarray(floors), 0.0)
    return reserved + (1.0 - reserved.sum()) * weights


def choose_arm(probabilities: FloatVector, draw: float) -> int:
    """Invert the cumulated probabilities; an arm of probability zero is never drawn."""
    chosen = int(np.searchsorted(np.cumsum(probabilities), draw, side="right"))
    return min(chosen, int(np.flatnonzero(probabilities)[-1]))


def _find_live(state: StudyState, decision_id: str) -> int:
    number = decision_number(state, decision_id)
    _check_here(state, state.users.number(state.decisions[number].user), decision_id)
    return number


def _check_here(state: StudyState, user: int, source: str) -> None:
    """Refuse changes of rewards of a user who has withdrawn."""
    if state.users.names[user] in state.users.withdrawn:
        raise ConflictError(
            f"Expected a decision of an enrolled user; got decision={source!r}, whose user has "
            "withdrawn. Nothing more can be recorded for that user."
        )


def _describe(state: StudyState, number: int) -> str:
    """Say what has become of a decision, within a sentence."""
    status = state.statuses[number]
    if status == "rewarded":
        return f"which has reward {state.rewards[make_id(number)].value!r}"
    return f"which is {status}"


def _find_arm(state: StudyState, arm: str) -> str:
    name = plain_name(arm)
    if not isinstance(name, str) or name not in state.arms:
        raise UnknownNameError("arm", arm, state.arms, "Use an arm of this study.")
    return name


def _read_eligible(state: StudyState, eligible: Sequence[str] | None) -> list[str] | None:
    """Refuse what is not a list of arms of this study."""
    if eligible is None:
        return None
    if isinstance(eligible, str) or not isinstance(eligible, list | tuple | set | frozenset):
        raise InputError(
            f"Expected a list of arms; got eligible={eligible!r}. Write for example "
            f"{list(state.arms)[:2]}, or leave it out for all."
        )
    return [_find_arm(state, arm) for arm in eligible]


def _available(state: StudyState, names: list[str] | None) -> tuple[int, ...]:
    """List the numbers of the arms that are eligible and active, in rising order."""
    if not state.active:
        raise ConflictError(
            "Expected an arm that is active; got none: all are suspended or withdrawn. Activate or "
            "add one."
        )
    arms = state.design.arms
    numbers = tuple(number for number in state.active if names is None or arms[number] in names)
    if not numbers:
        active = [arms[number] for number in state.active]
        raise InputError(
            f"Expected an eligible arm that is active; got eligible={sorted(names or ())}, while "
            f"{active} are active. Make one of these eligible, or activate an eligible one."
        )
    return numbers
