"""The loop: recruit, decide, reward, record (paper, Alg. 1).

Rounds are kept in an explicit queue: a round serves every active user once, then the next batch
joins. Regret is on means, and every policy meets the same users and the same noise for each user,
step and arm.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from cocobandits.environments.base import Cohort, Environment, Recruitment
from cocobandits.policies.registry import CocoSettings
from cocobandits.study import Study

_USER_STREAM, _NOISE_STREAM = 0, 1


class InteractionRecord(NamedTuple):
    """One decision and its reward. Counts run from zero."""

    step: int
    round: int
    user: int
    user_step: int
    arm: int
    probability: float
    reward: float
    regret: float


class World(NamedTuple):
    """Everything that chance decides, fixed before any policy acts."""

    cohort: Cohort
    noise: np.ndarray[tuple[int, int, int], np.dtype[np.float64]]  # user × step × arm


def draw_world(environment: Environment, seed: int) -> World:
    """Draw the users and the noise of every reward that could be asked for."""
    plan = environment.recruitment
    cohort = environment.draw_users(np.random.default_rng([seed, _USER_STREAM]), plan.num_users)
    shape = (plan.num_users, plan.steps_per_user, len(environment.arms))
    noise = np.random.default_rng([seed, _NOISE_STREAM]).normal(size=shape)
    return World(cohort, environment.reward_noise * noise)


def rounds(plan: Recruitment) -> Iterator[list[tuple[int, int]]]:
    """List, round by round, who is served and for the how-manieth time."""
    for number in range(plan.num_batches + plan.steps_per_user - 1):
        oldest = max(0, number - plan.steps_per_user + 1)
        batches = range(oldest, min(number + 1, plan.num_batches))
        yield [
            (batch * plan.batch_size + member, number - batch)
            for batch in batches
            for member in range(plan.batch_size)
        ]


def open_study(environment: Environment, policy: str, seed: int, settings: CocoSettings) -> Study:
    """Start a study of an environment."""
    return Study(
        environment.arms,
        environment.context,
        environment.reward_range,
        environment.reward_noise,
        policy=policy,
        seed=seed,
        settings=settings,
    )


def simulate(study: Study, environment: Environment, world: World) -> Iterator[InteractionRecord]:
    """Run a study to its end, yielding one record per interaction."""
    step = 0
    for round_number, served in enumerate(rounds(environment.recruitment)):
        for user, user_step in served:
            name = f"user-{user}"
            if user_step == 0:
                study.enrol(name, world.cohort.contexts[user])
            decision = study.decide(name)
            arm = environment.arms.index(decision.arm)
            means = world.cohort.arm_means[user]
            reward = float(means[arm] + world.noise[user, user_step, arm])
            study.reward(decision.id, reward)
            yield InteractionRecord(
                step,
                round_number,
                user,
                user_step,
                arm,
                decision.probabilities[decision.arm],
                reward,
                float(means.max() - means[arm]),
            )
            step += 1
