"""The hazard of too few moves: particles that are still copies of each other after resampling.

The effective sample size calls copies healthy; the correlation with their ancestors does not. The
users of environment `lmm` with arms at random, learned by coids from other random numbers each
time. How far runs differ, beside what each admits not to know, is printed for both; only the
default moves are held to it, since one move costs them diversity at every seed, but calibration
at some sizes of study only.
"""

from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from cocobandits import CocoSettings, SmcConfig
from cocobandits.environments.recruitment import Recruitment
from cocobandits.environments.registry import build_environment
from cocobandits.models.base import Statistics
from cocobandits.policies.registry import build_policy
from cocobandits.simulation.loop import open_study
from cocobandits.simulation.world import draw_world

NUM_USERS, NUM_PARTICLES, SEEDS = 16, 60, (0, 1, 2, 3)
TOO_FEW = SmcConfig(NUM_PARTICLES, moves="scales", moves_per_block=1, max_blocks=1)
DEFAULT = SmcConfig(NUM_PARTICLES)
ENVIRONMENT = build_environment("lmm").recruiting(Recruitment.all_at_once(NUM_USERS, 3))
CONTEXTS = np.linspace(-0.9, 0.9, 7)


class Outcome(NamedTuple):
    """Start correlations of all rejuvenations; mean and variance of newcomers' expected means."""

    correlations: list[float]
    mean: np.ndarray
    variance: np.ndarray


def _read_mean(belief):
    return belief.mean()


@cache
def learn(seed: int, inference: SmcConfig) -> Outcome:
    """Learn the same rewards from the random numbers of a seed."""
    settings = CocoSettings(nodes_per_arm=8, num_modes=40, inference=inference)
    design = open_study(ENVIRONMENT, "uniform", 0, settings).design
    policy, world = build_policy("coids", design.problem(), settings), draw_world(ENVIRONMENT, 0)
    key, arms = jax.random.key(seed), np.random.default_rng(0).integers(3, size=(NUM_USERS, 3))
    state = policy.init(jax.random.fold_in(key, 0))
    correlations = []
    for user, context in enumerate(world.cohort.contexts):
        state = policy.enrol(state, jnp.asarray(design.encode_context(context)))
        statistics = Statistics.empty(3)
        for step, arm in enumerate(arms[user].tolist()):
            reward = float(world.cohort.arm_means[user, arm] + world.noise[user, step, arm])
            statistics = statistics.add(arm, design.standardise(reward))
            update_key = jax.random.fold_in(key, 1 + 3 * user + step)
            state, info = policy.update(update_key, state, user, statistics)
            correlations += [info.start_correlation] if info.is_rejuvenated else []
    means, variances = [], []
    for x in CONTEXTS:
        readings = policy.read(state, jnp.array([x]), Statistics.empty(3), _read_mean)
        weights, values = np.exp(np.asarray(readings.log_weights)), np.asarray(readings.values)
        means.append(weights @ values)
        variances.append(weights @ (values - means[-1]) ** 2)
    return Outcome(correlations, np.array(means), np.array(variances))


def disagreement(name: str, outcomes: list[Outcome]) -> float:
    """Divide the deviation of means between runs by what each run admits not to know."""
    between = np.var([outcome.mean for outcome in outcomes], axis=0, ddof=1).mean()
    within = np.mean([outcome.variance for outcome in outcomes])
    correlations = np.concatenate([outcome.correlations for outcome in outcomes])
    print(
        f"\n{name}: start correlation {correlations.mean():.2f}, from {correlations.min():.2f} to "
        f"{correlations.max():.2f} in {len(correlations)} rejuvenations; runs differ by "
        f"{np.sqrt(between):.3f}, each admits {np.sqrt(within):.3f}"
    )
    return float(np.sqrt(between / within))


def test_too_few_moves_leave_copies_and_the_default_moves_part_them():
    starved = [learn(seed, TOO_FEW) for seed in SEEDS]
    healthy = [learn(seed, DEFAULT) for seed in SEEDS]
    disagreement("one move", starved)
    good = disagreement("default moves", healthy)
    for outcome in starved:
        assert np.mean(outcome.correlations) > 0.8
    assert max(max(outcome.correlations) for outcome in healthy) < DEFAULT.correlation_target
    # 60 independent draws would differ by 1/√60 = 0.13 of what they admit.
    assert good < 0.5
