"""The loop: recruit, decide, reward, record (paper, Alg. 1). Regret is on means."""

from collections.abc import Iterator
from typing import NamedTuple

from cocobandits.environments.base import Environment
from cocobandits.environments.registry import find_environment
from cocobandits.errors import ConfigurationError
from cocobandits.policies.description import Facts, PolicySettings
from cocobandits.policies.registry import find_policy
from cocobandits.rewards import Rewards
from cocobandits.simulation.world import World, draw_world
from cocobandits.study import Study
from cocobandits.study.context import FEATURE_RANGE


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


def simulate(
    policy: PolicySettings | str, environment: Environment | str, seed: int
) -> Iterator[InteractionRecord]:
    """Run a policy in an environment, yielding one record per interaction.

    Args:
        policy: settings, or the name of a policy.
        environment: an environment, or the name of one.
        seed: fixes users, noise and decisions.

    Raises:
        UnknownNameError: there is no policy or environment of that name.
        ConfigurationError: the policy cannot be built for the environment, or the seed is refused.
    """
    found = find_environment(environment)
    if type(seed) is not int or seed < 0:
        raise ConfigurationError(
            f"Expected a whole number from zero; got seed={seed!r}. Use for example 0."
        )
    world = draw_world(found, seed)
    return serve(open_study(policy, found, world, seed), found, world)


def open_study(
    policy: PolicySettings | str,
    environment: Environment,
    world: World,
    seed: int,
    rewards: Rewards | None = None,
) -> Study:
    """Start a study of an environment; policies that may know something about it are informed.

    Args:
        policy: settings, or the name of a policy.
        environment: declares arms and context.
        world: the true population.
        seed: of the study.
        rewards: if not those of the environment.
    """
    rewards = environment.rewards if rewards is None else rewards
    informed = find_policy(policy).informed(facts_of(environment, world, rewards))
    return Study(environment.arms, environment.context, rewards, informed, seed=seed)


def facts_of(environment: Environment, world: World, rewards: Rewards) -> Facts:
    """List what a policy may know about an environment, in the units of a study's rewards.

    Raises:
        ConfigurationError: a continuous feature is not declared on [-1, 1].
    """
    for name, declared in environment.context.items():
        if isinstance(declared, tuple) and declared != FEATURE_RANGE:
            raise ConfigurationError(
                f"Expected continuous features on {FEATURE_RANGE}, where a population is linear in "
                f"them; got {name}={declared!r}. Scale the feature in the environment."
            )
    plan = environment.recruitment
    return Facts(
        world.population.rescaled(rewards.centre, rewards.scale),
        plan.steps_per_user,
        plan.num_steps,
        rewards.scale,
        environment.mixed_model,
    )


def serve(study: Study, environment: Environment, world: World) -> Iterator[InteractionRecord]:
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
