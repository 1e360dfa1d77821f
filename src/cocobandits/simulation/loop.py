"""The loop: recruit, decide, reward, record (paper, Alg. 1). Regret is on means."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from cocobandits.environments.base import Environment
from cocobandits.errors import ConfigurationError
from cocobandits.policies.settings import CocoSettings
from cocobandits.simulation.world import World
from cocobandits.study import Study
from cocobandits.study.design import FEATURE_RANGE, STANDARD_RANGE


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


def open_study(
    environment: Environment,
    policy: str,
    seed: int,
    settings: CocoSettings,
    reward_range: tuple[float, float] | None = None,
) -> Study:
    """Start a study of an environment, on the range that it declares or on another."""
    return Study(
        environment.arms,
        environment.context,
        reward_range or environment.reward_range,
        environment.reward_noise,
        rewards=environment.rewards,
        policy=policy,
        seed=seed,
        settings=settings,
        reward_limits=environment.reward_limits,
    )


def telling(
    settings: CocoSettings,
    environment: Environment,
    world: World,
    reward_range: tuple[float, float] | None = None,
) -> CocoSettings:
    """Add the truth to the settings, for policies that are told it: population and steps per user.

    A population is told in standardised units, so the range has to be that of the study.

    Raises:
        ConfigurationError: a continuous feature is not declared on [-1, 1].
    """
    for name, declared in environment.context.items():
        if isinstance(declared, tuple) and declared != FEATURE_RANGE:
            raise ConfigurationError(
                f"Expected continuous features on {FEATURE_RANGE}, where a population is linear in "
                f"them; got {name}={declared!r}. Scale the feature in the environment."
            )
    low, high = reward_range or environment.reward_range
    width = STANDARD_RANGE[1] - STANDARD_RANGE[0]
    return replace(
        settings,
        prior=world.population.rescaled((low + high) / 2, width / (high - low)),
        steps_per_user=environment.recruitment.steps_per_user,
    )


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
            reward = float(world.rewards[user, user_step, arm])
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
