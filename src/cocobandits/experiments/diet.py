"""The diet example: why plan 1 comes first, though never best.

Owns the numbers and the conclusion; the terminal and the pictures only show them.
"""

from typing import NamedTuple

import jax
import numpy as np

from cocobandits.environments.diet import AGE_GROUPS, DietEnvironment
from cocobandits.populations.base import Belief
from cocobandits.simulation.loop import InteractionRecord
from cocobandits.simulation.world import World
from cocobandits.study import Study
from cocobandits.types import ArmVector
from cocobandits.users.statistics import Statistics

_PLAN_1 = 0
# What plan 1 pays those with a low and with a high metabolism, about.
_PLAN_1_REWARDS = (1.0, 2.0)

PlanVector = np.ndarray[tuple[int], np.dtype[np.float64]]


class AgeStory(NamedTuple):
    """What was learned about one age group, plan by plan.

    Attributes:
        first_shares: how often each plan was given first to the later half of the people.
        best_probability: P(plan is best) for somebody new.
        expected_loss: mean reward lost if somebody new is given the plan once.
        best_after: P(plan is best) after one reward of plan 1, by that reward.
    """

    first_shares: PlanVector
    best_probability: PlanVector
    expected_loss: PlanVector
    best_after: dict[float, PlanVector]


def summarise(study: Study, world: World, records: list[InteractionRecord]) -> dict[str, AgeStory]:
    """Summarise what a finished study learned about every age group.

    Raises:
        UnsupportedError: the policy holds no beliefs.
    """
    design, empty, stories = study.design, Statistics.empty(len(study.design.arms)), {}
    for age in AGE_GROUPS:
        belief = study.prior({"age": age})
        best, loss = map(np.asarray, _read(belief, empty))
        after = {
            reward: np.asarray(_read(belief, empty.add(_PLAN_1, design.standardise(reward)))[0])
            for reward in _PLAN_1_REWARDS
        }
        stories[age] = AgeStory(
            _first_shares(world, records, age), best, loss / design.scale, after
        )
    return stories


def conclude(age: str, story: AgeStory) -> str:
    """Say what the numbers of an age group mean for plan 1."""
    loss, best = story.expected_loss, story.best_probability
    surest = _best_other(best)
    mine, theirs = f"{loss[_PLAN_1]:.2f}", f"{loss[surest]:.2f}"
    subject = f"{age}: plan {surest + 1} is best {best[surest]:.0%} of the time and loses {theirs}"
    given = f"Plan 1 was given first to {story.first_shares[_PLAN_1]:.0%}."
    if round(loss[_PLAN_1], 2) >= round(loss[surest], 2):
        return f"{subject} on average where plan 1 loses {mine}. {given}"
    answers = ", ".join(
        f"plan {_best_other(after) + 1} is best with {max(after[1:]):.0%} after a reward of "
        f"{reward:g}"
        for reward, after in story.best_after.items()
    )
    return (
        f"{subject} on average; plan 1 loses only {mine}, and shows who this is: {answers}. {given}"
    )


def _first_shares(world: World, records: list[InteractionRecord], age: str) -> PlanVector:
    """Count what the later half of the people of an age group were given first."""
    contexts = world.cohort.contexts
    later = range(len(contexts) // 2, len(contexts))
    first = {each.user: each.arm for each in records if each.user_step == 0}
    arms = np.array([first[user] for user in later if contexts[user]["age"] == age], dtype=int)
    return np.bincount(arms, minlength=len(DietEnvironment.arms)) / max(len(arms), 1)


def _best_other(best: PlanVector) -> int:
    return 1 + int(np.argmax(best[1:]))


@jax.jit
def _read(belief: Belief, statistics: Statistics) -> tuple[ArmVector, ArmVector]:
    """Compute P(best) and the expected loss of each arm, after further rewards."""
    after = belief.condition(statistics)
    return after.best_probability(), after.expected_best() - after.mean()
