"""The loop: recruit, decide, reward, record (paper, Alg. 1). Regret is on means."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from cocobandits.environments.base import Environment
from cocobandits.policies.registry import CocoSettings
from cocobandits.simulation.world import World
from cocobandits.study import Study


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
        reward_limits=environment.reward_limits,
    )


def telling(settings: CocoSettings, environment: Environment, world: World) -> CocoSettings:
    """Add the true population of a world to the settings, for policies that are told it."""
    low, high = environment.reward_range
    # A study stretches its range of rewards to [-2, 2].
    prior = world.population.rescaled((low + high) / 2, 4.0 / (high - low))
    return replace(settings, prior=prior)


def simulate(study: Study, environment: Environment, world: World) -> Iterator[InteractionRecord]:
    """Run a study to its end, yielding one record per interaction."""
    step = 0
    for round_number, served in enumerate(environment.recruitment.rounds()):
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
