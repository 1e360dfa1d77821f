"""What may happen in a study: each rule checks a call and computes its event; None changes nothing.

A rule reads the state and never changes it. Its arguments have the names of the event's fields, so
that an event says which call it records. Ids of users are personal data: no message lists those of
others.
"""

from collections.abc import Sequence

import numpy as np

from cocobandits.checks import is_utf8, plain_name, read_name
from cocobandits.errors import ConflictError, InputError, UnknownNameError, brief
from cocobandits.study import events
from cocobandits.study.context import ContextValues, read_context, show_context
from cocobandits.study.design import check_floor_sum
from cocobandits.study.events import ArmStatus
from cocobandits.study.state import StudyState
from cocobandits.types import FloatVector, Truths

_MOST_REASON = 2000
# First letters of the ids of decisions and of observations.
_DECIDED, _OBSERVED = "d", "o"


def find_user(state: StudyState, user: str) -> int:
    """Return the number of a user who takes part.

    Raises:
        UnknownNameError: the user is not enrolled, or has withdrawn.
    """
    name = plain_name(user)
    if not isinstance(name, str) or name not in state.users.numbers:
        raise UnknownNameError("user", user, None, "Enrol the user first.")
    if name in state.users.withdrawn:
        remedy = "This user has withdrawn: enrol the person again under another id."
        raise UnknownNameError("user", user, None, remedy)
    return state.users.numbers[name]


def enrol(state: StudyState, user: str, context: ContextValues) -> events.Enrolled | None:
    """Enrol a user; the same user with the same context again is harmless.

    Raises:
        CocoError: as `Study.enrol` says.
    """
    features = state.design.features
    read = read_context(features, context)
    name = read_name("a user id", "user", user, "Use a shorter one, or give one.")
    if name in state.users.withdrawn:
        raise ConflictError(
            f"Expected a new user; got user={user!r}, who has withdrawn. Enrol the person again "
            "under another id."
        )
    if name not in state.users.numbers:
        return events.Enrolled(name, tuple(show_context(features, read).values()))
    number = state.users.numbers[name]
    known, is_late = state.users.contexts[number], state.users.is_late[number]
    if not np.all((read == known) | (np.isnan(read) & (np.isnan(known) | is_late))):
        raise ConflictError(
            f"Expected the context that user={user!r} enrolled with; got "
            f"{show_context(features, read)}. Enrol a second person under another id, or give late "
            f"values by update_context({user!r}, ...)."
        )
    return None


def update_context(
    state: StudyState, user: str, context: ContextValues
) -> events.ContextAdded | None:
    """Add values that were missing; None if they are known.

    Raises:
        CocoError: as `Study.update_context` says.
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
    return events.ContextAdded(
        state.users.names[number], tuple(show_context(features, added).values())
    )


def decide(state: StudyState, user: str, eligible: Sequence[str] | None) -> events.Decided | None:
    """Draw an arm for a user; None if a decision is open.

    Raises:
        CocoError: as `Study.decide` says.
    """
    arms = find_arms(state, user, eligible)
    return None if arms is None else draw_decision(state, find_user(state, user), arms)


def find_arms(
    state: StudyState, user: str, eligible: Sequence[str] | None
) -> tuple[int, ...] | None:
    """List the numbers of the arms that can be drawn for a user; None if a decision is open.

    Raises:
        CocoError: as `Study.decide` says, but for numerical trouble.
    """
    number, names = find_user(state, user), _read_eligible(state, eligible)
    if number not in state.open:
        return _available(state, names)
    made = state.open[number]
    if names is not None and made.arm not in names:
        raise ConflictError(
            f"Expected the arm of the open decision to be eligible; got arm={made.arm!r} of "
            f"decision={made.decision!r}, which is not among {sorted(names)}. Use "
            f"close({made.decision!r}) first if that arm will not be given."
        )
    return None


def draw_decision(state: StudyState, user: int, arms: tuple[int, ...]) -> events.Decided:
    """Draw one of some arms for a user, from the state and the number of the decision alone.

    Raises:
        NumericalError: the policy's probabilities are not a distribution.
    """
    design = state.design
    is_available = np.isin(np.arange(len(design.arms)), arms)
    weights = state.learned.weights(user, arms)
    probabilities = raise_to_floors(weights, design.floors, is_available)
    draw = state.learned.draw(len(state.decisions))
    return events.Decided(
        next_decision(state),
        state.users.names[user],
        design.arms[choose_arm(probabilities, draw)],
        tuple(design.arms[arm] for arm in arms),
        tuple(map(float, weights)),
        tuple(map(float, probabilities)),
        draw,
    )


def reward(state: StudyState, decision: str, value: float) -> events.Rewarded | None:
    """Record the first reward of a decision; the same value again is harmless.

    Raises:
        CocoError: as `Study.reward` says.
    """
    made = _find_live(state, decision)
    state.design.rewards.standardise(value)
    known = state.rewards.get(made.decision)
    if known is not None and known.value == float(value):
        return None
    if known is not None:
        raise ConflictError(
            f"Expected a decision without reward; got decision={decision!r}, "
            f"{_describe(state, made)}. Use correct({decision!r}, {value!r}) to replace it."
        )
    return events.Rewarded(made.decision, float(value))


def observe(state: StudyState, user: str, arm: str, value: float) -> events.Observed:
    """Record a reward that did not come from a decision of this study.

    Raises:
        CocoError: as `Study.observe` says.
    """
    number, name = find_user(state, user), _find_arm(state, arm)
    state.design.rewards.standardise(value)
    return events.Observed(
        f"{_OBSERVED}{state.num_observed}", state.users.names[number], name, float(value)
    )


def correct(state: StudyState, source: str, value: float | None) -> events.Corrected | None:
    """Replace a reward by another value, or take it back; the value it has is harmless.

    Raises:
        CocoError: as `Study.correct` says.
    """
    name = plain_name(source)
    known = state.rewards.get(name) if isinstance(name, str) else None
    if known is None:
        made = _find_live(state, source)
    else:
        _check_here(state, state.users.names[known.user], source)
    if value is not None:
        state.design.rewards.standardise(value)
    if known is None:
        raise ConflictError(
            f"Expected a decision with a reward; got decision={source!r}, "
            f"{_describe(state, made)}. Use reward({source!r}, value) first."
        )
    wanted = None if value is None else float(value)
    return None if wanted == known.value else events.Corrected(name, wanted)


def close(state: StudyState, decision: str) -> events.Closed:
    """Stop waiting for a reward.

    Raises:
        CocoError: as `Study.close` says.
    """
    made = _find_live(state, decision)
    if state.statuses[made.decision] != "open":
        raise ConflictError(
            f"Expected an open decision; got decision={decision!r}, "
            f"{_describe(state, made)}. There is nothing to close."
        )
    return events.Closed(made.decision)


def withdraw(state: StudyState, user: str) -> events.Withdrawn:
    """Withdraw a user.

    Raises:
        CocoError: as `Study.withdraw` says.
    """
    return events.Withdrawn(state.users.names[find_user(state, user)])


def change_arm(
    state: StudyState, arm: str, status: ArmStatus, reason: str = ""
) -> events.ArmChanged | None:
    """Give an arm another status; the one it has is harmless.

    Raises:
        CocoError: as `Study.suspend`, `withdraw_arm` and `activate` say.
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
    return events.ArmChanged(name, status, plain_name(reason))


def add_arm(state: StudyState, arm: str) -> events.ArmAdded:
    """Add an arm, the last.

    Raises:
        CocoError: as `Study.add_arm` says.
    """
    name = read_name("a name", "name", arm, "Give the arm a name.")
    if name in state.arms:
        raise ConflictError(
            f"Expected a new arm; got name={arm!r}, which is {state.arms[name]}. Use another "
            "name, or activate it if it is suspended."
        )
    floors = state.design.with_arm(name, len(state.decisions)).floors
    pairs = zip(floors, (*state.arms.values(), "active"), strict=True)
    check_floor_sum(tuple(floor for floor, status in pairs if status != "withdrawn"))
    return events.ArmAdded(name)


def next_decision(state: StudyState) -> str:
    """Return the id of the next decision."""
    return f"{_DECIDED}{len(state.decisions)}"


def find_decision(state: StudyState, decision_id: str) -> events.Decided:
    """Look up a decision by its id.

    Raises:
        UnknownNameError: there is no such decision.
    """
    name = plain_name(decision_id)
    if not isinstance(name, str) or name not in state.decisions:
        last = list(state.decisions)[-1:]
        remedy = "Use the id that decide() returned (the last is shown)."
        raise UnknownNameError("decision", decision_id, last, remedy)
    return state.decisions[name]


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


def _find_live(state: StudyState, decision_id: str) -> events.Decided:
    made = find_decision(state, decision_id)
    _check_here(state, made.user, decision_id)
    return made


def _check_here(state: StudyState, user: str, source: str) -> None:
    """Refuse changes of rewards of a user who has withdrawn."""
    if user in state.users.withdrawn:
        raise ConflictError(
            f"Expected a decision of an enrolled user; got decision={source!r}, whose user has "
            "withdrawn. Nothing more can be recorded for that user."
        )


def _describe(state: StudyState, made: events.Decided) -> str:
    """Say what has become of a decision, within a sentence."""
    status = state.statuses[made.decision]
    if status == "rewarded":
        return f"which has reward {state.rewards[made.decision].value!r}"
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
