"""Many arms, yes/no rewards, features with gaps: users come from the declared population."""

import numpy as np
import pytest

from cocobandits.environments.registry import find_environment
from cocobandits.environments.survey import MISSING_SHARE
from cocobandits.simulation.world import draw_world

NUM_USERS = 100_000


def drawn(name):
    environment, generator = find_environment(name), np.random.default_rng(4)
    shared = environment.draw_shared(generator)
    cohort = environment.draw_users(generator, NUM_USERS, shared)
    return environment, cohort, environment.population(shared)


def shares_of(mixture, terms):
    logits = terms @ np.array(mixture.logits).T
    return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


def check(centred):
    """Compare averages with zero, within four standard errors."""
    errors = centred.std(axis=0) / np.sqrt(len(centred))
    assert np.max(np.abs(centred.mean(axis=0)) / errors) < 4


def terms_of(name, contexts):
    ones = np.ones(len(contexts))
    if name != "survey":
        return np.stack([ones, [each["x"] for each in contexts]], axis=1)
    columns = [
        [each["age"] for each in contexts],
        [each["motivation"] for each in contexts],
        *([each["sex"] == sex for each in contexts] for sex in ("female", "male")),
        *([each["smoker"] == smokes for each in contexts] for smokes in (False, True)),
    ]
    return np.stack([ones, *map(np.array, columns)], axis=1).astype(float)


@pytest.mark.parametrize("name", ["groups", "survey", "yes-no"])
def test_moments_match_the_population(name):
    """First and second moments of every arm, on either side of the first feature."""
    environment, cohort, mixture = drawn(name)
    terms = terms_of(name, cohort.contexts)
    shares = shares_of(mixture, terms)
    if environment.rewards.kind == "bernoulli":
        alpha, beta = np.array(mixture.successes), np.array(mixture.failures)
        means = alpha / (alpha + beta)
        squares = means * (alpha + 1) / (alpha + beta + 1)
    else:
        means = np.array(mixture.means)[:, :, 0]
        squares = means**2 + np.sum(np.array(mixture.factors)[..., 0] ** 2, axis=2)
    side = np.sign(terms[:, 1:2])
    for power, expected in ((1, means), (2, squares)):
        centred = cohort.arm_means**power - shares @ expected
        check(centred)
        check(side * centred)


def test_groups_have_more_arms_than_a_user_can_try():
    """Ten arms, ten steps; every group has its own centre, drawn once per run."""
    environment, _, mixture = drawn("groups")
    plan = environment.recruitment
    assert (len(environment.arms), plan.num_users, plan.steps_per_user) == (10, 200, 10)
    centres = np.array(mixture.means)[:, :, 0]
    assert len(set(centres.argmax(axis=1))) > 1
    assert mixture.is_independent


def test_same_people_come_with_and_without_gaps():
    """Whatever is given is the same, three in ten values are not, and the truth does not change."""
    full, gaps = (drawn(name)[1] for name in ("survey", "survey-missing"))
    np.testing.assert_array_equal(full.arm_means, gaps.arm_means)
    pairs = [
        (full.contexts[user][name], gaps.contexts[user][name])
        for user in range(NUM_USERS)
        for name in full.contexts[user]
    ]
    missing = np.array([given is None for _, given in pairs])
    assert all(given is None or given == value for value, given in pairs)
    assert abs(missing.mean() - MISSING_SHARE) < 4 * np.sqrt(0.21 / len(missing))
    assert not any(value is None for value, _ in pairs)


def test_yes_is_as_likely_as_the_mean_says():
    """Rewards are zero or one, and average to the arm means."""
    environment = find_environment("yes-no")
    world = draw_world(environment, 3)
    assert set(np.unique(world.rewards)) == {0.0, 1.0}
    check((world.rewards - world.cohort.arm_means[:, None, :]).reshape(-1, len(environment.arms)))
