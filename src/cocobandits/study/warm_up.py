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
            while user in study._state.users.numbers:
                user = f"{user}+"
            # A table with gaps is compiled for blank and for complete users.
            is_blank = has_gaps and number % 2 == 0
            invented = {feature.name: _value(feature, number) for feature in study.design.features}
            study.enrol(user, {} if is_blank else invented)
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
        study.reward(decision.id, study.design.rewards.range[(arm + step) % 2])
        study.catch_up()
        is_enough |= study.health is None or study.health.is_rejuvenated
    return is_enough


def _value(feature: Feature, number: int) -> ContextValue:
    """Invent a value; those of consecutive numbers differ."""
    if feature.num_categories is not None:
        return feature.show(number % feature.num_categories)
    assert feature.range is not None
    low, high = feature.range
    return low + (high - low) * (number % 5 + 0.5) / 5
