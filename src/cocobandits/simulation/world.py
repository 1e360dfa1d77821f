"""Everything that chance decides in a run, drawn before any policy acts.

Every policy meets the same users and the same noise for each user, step and arm, and is evaluated
on the same newcomers.
"""

from typing import NamedTuple

import numpy as np

from cocobandits.environments.base import Cohort, Environment, FloatCube, FloatVector
from cocobandits.errors import ConfigurationError, brief
from cocobandits.populations.known.beta_mixture import BetaMixture
from cocobandits.populations.known.gaussian_mixture import ConditionalMixture

# Streams of a seed. NumPy takes [seed, 0] for the seed alone, so nobody else may use that.
_USERS, _NOISE, _SHARED, _EVALUATION = range(4)


class World(NamedTuple):
    """The users of a run, all their rewards, and the population they come from."""

    cohort: Cohort
    rewards: FloatCube  # user × step × arm: what each arm would give
    population: ConditionalMixture | BetaMixture


class EvaluationBatch(NamedTuple):
    """Newcomers that learned priors are evaluated on; nobody learns from them."""

    cohort: Cohort
    rewards: FloatCube  # user × pull × arm
    draws: np.ndarray[tuple[int, int], np.dtype[np.float64]]  # user × pull, uniform


def draw_world(environment: Environment, seed: int) -> World:
    """Draw the users and the noise of every reward that could be asked for.

    Raises:
        ConfigurationError: the environment draws other users than it declares, or describes no
            population.
    """
    plan = environment.recruitment
    shared = _draw_shared(environment, seed)
    users = np.random.default_rng([seed, _USERS])
    cohort = _draw_users(environment, users, plan.num_users, shared)
    shape = (plan.num_users, plan.steps_per_user, len(environment.arms))
    noise = environment.rewards.draw_noise(np.random.default_rng([seed, _NOISE]), shape)
    rewards = environment.rewards.draw(cohort.arm_means[:, None, :], noise)
    population = environment.population(shared)
    if not isinstance(population, ConditionalMixture | BetaMixture):
        raise ConfigurationError(
            "Expected the true population as a ConditionalMixture or a BetaMixture; got "
            f"{brief(population)}. Change population of the environment {environment.name!r}."
        )
    return World(cohort, rewards, population)


def draw_evaluation(
    environment: Environment, seed: int, num_users: int, num_pulls: int
) -> EvaluationBatch:
    """Draw newcomers of the same run, their noise, and the uniforms that choose their arms.

    Raises:
        ConfigurationError: the environment draws other users than it declares.
    """
    generator = np.random.default_rng([seed, _EVALUATION])
    cohort = _draw_users(environment, generator, num_users, _draw_shared(environment, seed))
    noise = environment.rewards.draw_noise(generator, (num_users, num_pulls, len(environment.arms)))
    draws = generator.uniform(size=(num_users, num_pulls))
    rewards = environment.rewards.draw(cohort.arm_means[:, None, :], noise)
    return EvaluationBatch(cohort, rewards, draws)


def _draw_users(
    environment: Environment, generator: np.random.Generator, num_users: int, shared: FloatVector
) -> Cohort:
    contexts, means = environment.draw_users(generator, num_users, shared)
    shape, num_arms = np.shape(means), len(environment.arms)
    num_wrong = np.sum(~np.isfinite(means))
    if len(contexts) != num_users or shape != (num_users, num_arms) or num_wrong:
        raise ConfigurationError(
            f"Expected contexts of {num_users} users and finite means of {num_users} users × "
            f"{num_arms} arms; got {len(contexts)} contexts and arm_means.shape={shape}, "
            f"{num_wrong} not finite. Change draw_users of the environment {environment.name!r}."
        )
    return Cohort(contexts, means)


def _draw_shared(environment: Environment, seed: int) -> FloatVector:
    return environment.draw_shared(np.random.default_rng([seed, _SHARED]))
