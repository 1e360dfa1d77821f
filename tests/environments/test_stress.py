"""The populations beyond the paper have the shapes they are named after."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from cocobandits.environments import stress
from cocobandits.environments.registry import find_environment

NUM_USERS = 100_000
BUILDERS = (stress.skewed, stress.groups, stress.ring, stress.heteroscedastic)
NAMES = tuple(build().name for build in BUILDERS)
BINS = np.linspace(-1.0, 1.0, 5)


@cache
def drawn(name):
    cohort = find_environment(name).draw_users(np.random.default_rng(31), NUM_USERS)
    return np.array([context["x"] for context in cohort.contexts]), cohort.arm_means


def described(mixture, x):
    """Compute mean and covariance of the arm means at every x, component by component."""
    terms = np.stack([np.ones_like(x), x])
    weights = np.exp(np.array(mixture.logits) @ terms)
    weights /= weights.sum(axis=0)
    mean, second = np.zeros((len(x), 3)), np.zeros((len(x), 3, 3))
    for weight, means, factors in zip(weights, mixture.means, mixture.factors, strict=True):
        centre = (np.array(means) @ terms).T
        factor = np.moveaxis(np.array(factors) @ terms, -1, 0)
        own = factor @ factor.transpose(0, 2, 1)
        mean += weight[:, None] * centre
        second += weight[:, None, None] * (own + centre[:, :, None] * centre[:, None, :])
    return mean, second - mean[:, :, None] * mean[:, None, :]


def skewness(values):
    """Compute E[((v - mean) / deviation)³]."""
    return np.mean(((values - values.mean()) / values.std()) ** 3)


@pytest.mark.parametrize("build", BUILDERS)
def test_builders_are_registered(build):
    assert find_environment(build().name) == build()


@pytest.mark.parametrize("name", NAMES)
def test_moments_match_the_population_in_every_bin_of_x(name):
    """Means, and all products of two arm means; |error| / standard error < 4."""
    x, arm_means = drawn(name)
    mean, covariance = described(find_environment(name).population(), x)
    centred = arm_means - mean
    products = centred[:, :, None] * centred[:, None, :] - covariance
    differences = np.concatenate([centred, products.reshape(NUM_USERS, -1)], axis=1)
    for low, high in pairwise(BINS):
        within = differences[(x >= low) & (x < high)]
        errors = within.std(axis=0) / np.sqrt(len(within))
        assert np.max(np.abs(within.mean(axis=0)) / errors) < 4


@pytest.mark.parametrize("name", NAMES)
def test_hardly_anybody_is_outside_of_the_range(name):
    low, high = find_environment(name).rewards.range
    _, arm_means = drawn(name)
    is_outside = ((arm_means < low) | (arm_means > high)).any(axis=1)
    assert is_outside.mean() < 1e-3
    # The range is not so wide either that most of it is empty.
    assert np.ptp(arm_means) > 0.7 * (high - low)


@pytest.mark.parametrize("name", NAMES)
def test_drawing_is_reproducible(name):
    environment = find_environment(name)
    first, again, other = (
        environment.draw_users(np.random.default_rng(seed), 50) for seed in (3, 3, 4)
    )
    assert first.contexts == again.contexts
    np.testing.assert_array_equal(first.arm_means, again.arm_means)
    assert not np.array_equal(first.arm_means, other.arm_means)


@pytest.mark.parametrize("name", NAMES)
def test_no_arm_is_best_for_everybody(name):
    """Two arms at least are best for a sixth of the users, and every arm for some."""
    _, arm_means = drawn(name)
    shares = np.bincount(arm_means.argmax(axis=1), minlength=3) / NUM_USERS
    assert np.sort(shares)[1] > 1 / 6
    assert np.min(shares) > 0.02


def test_skewed_has_a_long_upper_tail_that_moves_the_other_arms():
    """An exponential law has skewness 2, a normal one 0."""
    _, arm_means = drawn("stress-skewed")
    first = arm_means[:, 0]
    assert skewness(first) > 2
    median, low, high = np.quantile(first, [0.5, 0.01, 0.99])
    assert high - median > 5 * (median - low)
    assert np.corrcoef(first, arm_means[:, 1])[0, 1] < -0.9
    assert np.corrcoef(first, arm_means[:, 2])[0, 1] > 0.9


def test_groups_are_three_and_each_has_its_best_arm():
    """Everybody is near one of three centres, and nobody half-way between two."""
    x, arm_means = drawn("stress-groups")
    centres = np.array(find_environment("stress-groups").population().means)[:, :, 0]
    distances = np.linalg.norm(arm_means[:, None] - centres[None], axis=2)
    nearest = distances.argmin(axis=1)
    np.testing.assert_array_equal(centres.argmax(axis=1), [0, 1, 2])
    assert (arm_means.argmax(axis=1) == nearest).mean() > 0.98
    for first, second in ((0, 1), (0, 2), (1, 2)):
        middle = (centres[first] + centres[second]) / 2
        near_middle = np.linalg.norm(arm_means - middle, axis=1) < 0.15
        near_centre = np.linalg.norm(arm_means - centres[first], axis=1) < 0.15
        assert near_middle.mean() < 0.05 * near_centre.mean()
    left, right = (
        np.bincount(nearest[side], minlength=3) / side.sum() for side in (x < -0.5, x > 0.5)
    )
    assert min(left[0], right[2]) > 0.6
    assert max(left[2], right[0]) < 0.1


def test_ring_has_an_empty_middle():
    """Around the centre of their own x, users are at distance one and at every angle."""
    x, arm_means = drawn("stress-ring")
    plane = arm_means[:, :2] - np.outer(x, [0.3, -0.3])
    radius = np.linalg.norm(plane, axis=1)
    assert (radius < 0.5).mean() < 1e-4
    assert abs(radius.mean() - 1) < 0.01
    angles = np.arctan2(plane[:, 1], plane[:, 0])
    counts, _ = np.histogram(angles, bins=32, range=(-np.pi, np.pi))
    assert counts.min() > 0.5 * NUM_USERS / 32


def test_one_arm_of_the_ring_leaves_two_candidates_for_the_other():
    x, arm_means = drawn("stress-ring")
    first, second = (arm_means[:, :2] - np.outer(x, [0.3, -0.3])).T
    candidates = second[np.abs(first - 0.3) < 0.05]
    assert (np.abs(candidates) < 0.6).mean() < 0.01
    assert 0.2 < (candidates > 0).mean() < 0.8


def test_spread_grows_with_x_and_differs_by_arm():
    """Deviations at x = ±0.95 are those of the factors: |F_a(x)|, row by row."""
    x, arm_means = drawn("stress-heteroscedastic")
    population = find_environment("stress-heteroscedastic").population()
    mean, _ = described(population, x)
    low, high = (
        (arm_means - mean)[np.abs(x - centre) < 0.05].std(axis=0) for centre in (-0.95, 0.95)
    )
    np.testing.assert_allclose(low, [0.0675, 0.124, 0.117], rtol=0.07)
    np.testing.assert_allclose(high, [0.7325, 0.596, 0.329], rtol=0.07)
    assert np.min(high / low) > 2
    # The means cross: arm 2 leads on the left, arm 1 on the right.
    means = np.array(population.means[0]) @ np.array([[1.0, 1.0], [-1.0, 1.0]])
    np.testing.assert_array_equal(means.argmax(axis=0), [1, 0])
    diagonal = np.diagonal(np.array(population.factors[0]), axis1=0, axis2=1).T
    assert np.min(diagonal[:, 0] - np.abs(diagonal[:, 1])) > 0
