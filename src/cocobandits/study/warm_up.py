"""A rehearsal that makes JAX compile what a study will need, on a copy that is thrown away.

Owns the invented users and their rewards. Nothing here is ever part of a study.
"""

from contextlib import suppress
from typing import TYPE_CHECKING

from cocobandits.errors import NumericalError, UnsupportedError
from cocobandits.study.context import ContextValue, Feature

if TYPE_CHECKING:
    from cocobandits.study.study import Study

# Rewards at the ends of the range move particles within ten users, unless noise drowns them.
_MOST_USERS, _FEWEST_USERS = 30, 2
_REWARDS_PER_USER = 2


def rehearse(study: "Study", has_gaps: bool) -> None:
    """Serve invented users until particles have moved, and explain one; changes the study.

    Args:
        study: the copy.
        has_gaps: whether every second user has no context.
    """
    if "active" not in study.arms.values():
        return
    user = "rehearsal"
    # Nothing of this is kept: a population that extreme rewards contradict is no error here.
    with suppress(NumericalError):
        for number in range(_MOST_USERS):
            while user in study._state.users:
                user = f"{user}+"
            # A table with gaps is compiled for blank and for complete users.
            is_blank = has_gaps and number % 2 == 0
            study.enrol(user, {} if is_blank else _context(study.design.features, number))
            if _serve(study, user) and number + 1 >= _FEWEST_USERS:
                break
    with suppress(UnsupportedError):
        study.explain(user)


def _serve(study: "Study", user: str) -> bool:
    """Give a user good and bad rewards; report whether particles moved or there are none."""
    is_enough = False
    for step in range(_REWARDS_PER_USER):
        decision = study.decide(user)
        arm = study.design.arms.index(decision.arm)
        study.reward(decision.id, study.design.reward_range[(arm + step) % 2])
        study.catch_up()
        is_enough |= study.health is None or study.health.is_rejuvenated
    return is_enough


def _context(features: tuple[Feature, ...], number: int) -> dict[str, ContextValue]:
    """Invent a context; consecutive numbers differ in every feature."""
    return {feature.name: _value(feature, number) for feature in features}


def _value(feature: Feature, number: int) -> ContextValue:
    if feature.is_boolean:
        return bool(number % 2)
    if feature.range is None:
        return feature.categories[number % len(feature.categories)]
    low, high = feature.range
    return low + (high - low) * (number % 5 + 0.5) / 5
