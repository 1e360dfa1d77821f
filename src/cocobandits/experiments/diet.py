"""The diet example: why plan 1 comes first, though never best.

Owns the numbers; the terminal and the pictures only show them.
"""

from typing import NamedTuple

import jax
import numpy as np

from cocobandits.environments.diet import AGE_GROUPS, DietEnvironment
from cocobandits.models.base import Belief, Statistics
from cocobandits.simulation.loop import InteractionRecord
from cocobandits.simulation.world import World
from cocobandits.study import Study
from cocobandits.types import ArmVector

TELLING_PLAN = 0
# What plan 1 pays those with a low and with a high metabolism, about.
TELLING_REWARDS = (1.0, 2.0)

PlanVector = np.ndarray[tuple[int], np.dtype[np.float64]]


class AgeStory(NamedTuple):
    """What was learned about one age group, plan by plan.

    Attributes:
        first_shares: how often each plan was given first to the later half of the people.
        best_probability: P(plan is best) for somebody new.
        expected_loss: mean reward lost if somebody new is given the plan once.
        best_after: P(plan is best) after one reward of plan 1, for each telling reward.
    """

    first_shares: PlanVector
    best_probability: PlanVector
    expected_loss: PlanVector
    best_after: dict[float, PlanVector]


def tell(study: Study, world: World, records: list[InteractionRecord]) -> dict[str, AgeStory]:
    """Read the story of every age group off a finished study.

    Raises:
        UnsupportedError: the policy holds no beliefs.
    """
    return {age: _tell_age(study, age, first_shares(world, records, age)) for age in AGE_GROUPS}


def first_shares(world: World, records: list[InteractionRecord], age: str) -> PlanVector:
    """Count what the later half of the people of an age group were given first."""
    half = len(world.cohort.contexts) // 2
    first = [
        record.arm
        for record in records
        if record.user_step == 0
        and record.user >= half
        and world.cohort.contexts[record.user]["age"] == age
    ]
    counts = np.bincount(np.array(first, dtype=int), minlength=len(DietEnvironment.arms))
    return counts / max(len(first), 1)


def conclude(age: str, story: AgeStory) -> str:
    """Say what the numbers of an age group mean for plan 1."""
    loss, best = story.expected_loss, story.best_probability
    others = [plan for plan in range(len(loss)) if plan != TELLING_PLAN]
    surest = max(others, key=lambda plan: best[plan])
    given = f"Plan 1 was given first to {story.first_shares[TELLING_PLAN]:.0%}."
    if loss[TELLING_PLAN] > loss[surest]:
        return (
            f"{age}: plan {surest + 1} is best {best[surest]:.0%} of the time and loses "
            f"{loss[surest]:.2f} on average where plan 1 loses {loss[TELLING_PLAN]:.2f}. {given}"
        )
    answers = []
    for reward, after in story.best_after.items():
        plan = max(others, key=lambda plan: after[plan])
        answers.append(
            f"plan {plan + 1} is best with {after[plan]:.0%} after a reward of {reward:g}"
        )
    return (
        f"{age}: plan {surest + 1} is best {best[surest]:.0%} of the time and loses "
        f"{loss[surest]:.2f} on average; plan 1 loses only {loss[TELLING_PLAN]:.2f}, and tells who "
        f"this is: {', '.join(answers)}. {given}"
    )


def _tell_age(study: Study, age: str, shares: PlanVector) -> AgeStory:
    design = study.design
    belief = study.prior({"age": age})
    empty = Statistics.empty(len(design.arms))
    best, loss = _read(belief, empty)
    after = {
        reward: np.asarray(_read(belief, empty.add(TELLING_PLAN, design.standardise(reward)))[0])
        for reward in TELLING_REWARDS
    }
    return AgeStory(shares, np.asarray(best), np.asarray(loss) / design.scale, after)


@jax.jit
def _read(belief: Belief, statistics: Statistics) -> tuple[ArmVector, ArmVector]:
    """Compute P(best) and the expected loss of each arm, after further rewards."""
    told = belief.condition(statistics)
    return told.best_probability(), told.expected_best() - told.mean()
