"""Orthant probabilities against closed forms, dense sums over a common factor, and scipy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import owens_t
from scipy.stats import multivariate_normal, norm

from cocobandits.numerics.orthant import (
    best_probability,
    bivariate_cumulative,
    expected_largest,
    orthant_probability,
)

FACTOR = np.linspace(-9.0, 9.0, 20_001)
FACTOR_WEIGHTS = norm.pdf(FACTOR) * (FACTOR[1] - FACTOR[0])
BOUNDS = np.array([-40.0, -8.0, -3.0, -1.1, -0.2, 0.001, 0.7, 2.0, 6.0, 40.0])

orthant = jax.jit(orthant_probability)
orthants = jax.jit(jax.vmap(orthant_probability))
bests = jax.jit(jax.vmap(best_probability))
cumulative = jax.jit(bivariate_cumulative)
largest = jax.jit(jax.vmap(expected_largest))


def by_owen(h, k, correlation):
    """Compute P(X ≤ h, Y ≤ k) from Owen's T function; neither bound may be zero."""
    root = np.sqrt(1 - correlation**2)
    parts = owens_t(h, (k / h - correlation) / root) + owens_t(k, (h / k - correlation) / root)
    return (norm.cdf(h) + norm.cdf(k)) / 2 - parts - np.where(h * k > 0, 0.0, 0.5)


def one_factor_orthant(mean, loadings, deviations):
    """Add up over the common factor; the parts m + b·t + d·e are independent given it."""
    leads = (mean[:, None] + loadings[:, None] * FACTOR[None]) / deviations[:, None]
    return FACTOR_WEIGHTS @ np.prod(norm.cdf(leads), axis=0)


def rank_one_orthant(mean, loadings):
    """All parts m + b·t are positive on an interval of t."""
    cuts = -mean / loadings
    low = np.max(cuts[loadings > 0], initial=-np.inf)
    high = np.min(cuts[loadings < 0], initial=np.inf)
    return max(norm.cdf(high) - norm.cdf(low), 0.0)


def independent_best(mean, deviations):
    """Add up over an arm's value the chance that every rival lies below it."""
    wins = []
    for arm in range(len(mean)):
        value = mean[arm] + deviations[arm] * FACTOR
        rivals = [b for b in range(len(mean)) if b != arm]
        below = [norm.cdf((value - mean[b]) / deviations[b]) for b in rivals]
        wins.append(FACTOR_WEIGHTS @ np.prod(below, axis=0))
    return np.array(wins)


@pytest.mark.parametrize(
    ("mean", "variance", "expected"),
    [(0.3, 4.0, norm.cdf(0.15)), (-1e9, 1.0, 0.0), (0.2, 0.0, 1.0), (-0.2, 0.0, 0.0)],
)
def test_one_part_is_the_normal_distribution_function(mean, variance, expected):
    actual = orthant(jnp.array([mean]), jnp.array([[variance]]))
    assert float(actual) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("correlation", [-0.999, -0.6, 0.0, 0.25, 0.95, 0.999])
def test_bivariate_matches_owen_on_a_grid(correlation):
    """Measured: within 1e-15, for bounds from -40 to 40."""
    h, k = np.meshgrid(BOUNDS, BOUNDS, indexing="ij")
    actual = cumulative(jnp.asarray(h), jnp.asarray(k), jnp.asarray(correlation))
    np.testing.assert_allclose(actual, by_owen(h, k, correlation), atol=1e-12)
    centre = cumulative(jnp.zeros(()), jnp.zeros(()), jnp.asarray(correlation))
    assert float(centre) == pytest.approx(0.25 + np.arcsin(correlation) / (2 * np.pi), abs=1e-12)


@pytest.mark.parametrize("correlation", [-1.0, 1.0])
def test_bivariate_of_one_variable_or_its_mirror(correlation):
    """At ±1 there is one variable: P(X ≤ h, ±X ≤ k)."""
    h, k = np.meshgrid(BOUNDS, BOUNDS + 0.05, indexing="ij")
    same = norm.cdf(np.minimum(h, k))
    mirrored = np.maximum(norm.cdf(h) - norm.cdf(-k), 0.0)
    actual = cumulative(jnp.asarray(h), jnp.asarray(k), jnp.asarray(correlation))
    np.testing.assert_allclose(actual, same if correlation > 0 else mirrored, atol=1e-8)


@pytest.mark.parametrize("gap", [1e-5, 1e-4, 1e-3])
def test_perfectly_correlated_parts_that_almost_tie(gap):
    """P(X > -0.4, X > -0.4 - gap): the docstring promises 1e-6 there."""
    actual = orthant(jnp.array([0.4, 0.4 + gap]), jnp.ones((2, 2)))
    assert float(actual) == pytest.approx(norm.cdf(0.4), abs=1e-6)


@pytest.mark.parametrize(
    ("mean", "covariance"),
    [
        ([0.3, -0.5], [[1.0, 0.4], [0.4, 2.0]]),
        ([-0.7, 0.2], [[0.5, -0.45], [-0.45, 0.6]]),
        ([1e5, -0.3], [[1.0, 0.3], [0.3, 1.0]]),
        ([0.4, -0.2], [[0.0, 0.0], [0.0, 1.0]]),
        ([-0.4, 0.2], [[0.0, 0.0], [0.0, 1.0]]),
        ([0.4, 0.3], [[1.0, 2.0], [2.0, 4.0]]),
    ],
)
def test_two_parts_match_scipy(mean, covariance):
    reference = multivariate_normal(np.zeros(2), covariance, allow_singular=True)
    # A part of variance zero is a constant, on which scipy's integration cannot rely.
    constant = covariance[0][0] == 0
    expected = norm.cdf(mean[1]) * (mean[0] > 0) if constant else reference.cdf(mean)
    actual = orthant(jnp.array(mean), jnp.array(covariance))
    assert float(actual) == pytest.approx(expected, abs=1e-8)


# Measured on these cases: 7e-5, 2.7e-4 and 1.5e-3; on three times as many others up to 1.2e-4,
# 2.1e-3 and 2.6e-3.
@pytest.mark.parametrize(
    ("least", "most", "tolerance"), [(0.5, 1.5, 2e-4), (0.1, 0.4, 6e-4), (0.01, 0.05, 3e-3)]
)
@pytest.mark.parametrize("num_parts", [3, 4, 5, 6])
def test_lattice_matches_a_common_factor(num_parts, least, most, tolerance):
    """Parts with one factor in common: loosely, strongly, and almost singularly correlated."""
    generator = np.random.default_rng(num_parts)
    mean, loadings = generator.normal(size=(2, 20, num_parts))
    deviations = generator.uniform(least, most, (20, num_parts))
    expected = [one_factor_orthant(*case) for case in zip(mean, loadings, deviations, strict=True)]
    own = np.eye(num_parts)[None] * (deviations**2)[:, :, None]
    shared = loadings[:, :, None] * loadings[:, None, :]
    actual = np.asarray(orthants(jnp.asarray(mean), jnp.asarray(own + shared)))
    assert np.abs(actual - expected).max() < tolerance


@pytest.mark.parametrize("num_parts", [3, 4, 5, 6])
def test_lattice_on_singular_covariances(num_parts):
    """Rank one: the parts are positive on an interval. Measured: within 1.1e-3."""
    generator = np.random.default_rng(num_parts)
    mean, loadings = generator.normal(size=(2, 20, num_parts))
    mean[:5] = np.abs(mean[:5])
    expected = [rank_one_orthant(*case) for case in zip(mean, loadings, strict=True)]
    assert max(expected) > 0.2
    shared = loadings[:, :, None] * loadings[:, None, :]
    actual = np.asarray(orthants(jnp.asarray(mean), jnp.asarray(shared)))
    assert np.abs(actual - expected).max() < 2e-3


@pytest.mark.parametrize("num_parts", [3, 4, 5, 6])
def test_lattice_matches_scipy(num_parts):
    """Random covariances of full rank. Measured: within 1.2e-3."""
    generator = np.random.default_rng(num_parts)
    roots = generator.normal(size=(20, num_parts, num_parts))
    covariances = roots @ roots.transpose(0, 2, 1) / num_parts
    mean = 0.5 * generator.normal(size=(20, num_parts))
    actual = np.asarray(orthants(jnp.asarray(mean), jnp.asarray(covariances)))
    for case in range(3):
        reference = multivariate_normal(np.zeros(num_parts), covariances[case], seed=1)
        assert actual[case] == pytest.approx(reference.cdf(mean[case]), abs=2e-3)


@pytest.mark.parametrize(("num_arms", "tolerance"), [(2, 1e-11), (3, 1e-11), (4, 3e-4), (7, 3e-4)])
def test_best_arm_of_independent_arms(num_arms, tolerance):
    """Measured: within 3e-13 up to three arms, within 1.3e-4 beyond (6.3e-4 on other cases)."""
    generator = np.random.default_rng(num_arms)
    mean, deviations = generator.normal(0, 0.7, 8 * num_arms), generator.uniform(0.2, 1.5, num_arms)
    means = mean.reshape(8, num_arms)
    covariances = np.broadcast_to(np.diag(deviations**2), (8, num_arms, num_arms))
    actual = np.asarray(bests(jnp.asarray(means), jnp.asarray(covariances)))
    expected = np.array([independent_best(mean, deviations) for mean in means])
    assert np.abs(actual - expected).max() < tolerance
    np.testing.assert_allclose(actual.sum(axis=1), np.ones(8), atol=1e-12)


@pytest.mark.parametrize(("num_arms", "tolerance"), [(3, 1e-12), (4, 2e-3)])
def test_permuted_arms_have_permuted_shares(num_arms, tolerance):
    """Correlated arms, one half of the cases of rank one; the lattice favours no arm beyond it."""
    generator = np.random.default_rng(5)
    means, order = generator.normal(size=(8, num_arms)), generator.permutation(num_arms)
    factors = generator.normal(size=(8, num_arms, 2))
    factors[4:, :, 1] = 0.0
    covariances = factors @ factors.transpose(0, 2, 1)
    straight = np.asarray(bests(jnp.asarray(means), jnp.asarray(covariances)))
    moved = covariances[:, order][:, :, order]
    permuted = np.asarray(bests(jnp.asarray(means[:, order]), jnp.asarray(moved)))
    assert np.abs(permuted - straight[:, order]).max() < tolerance
    assert np.ptp(straight, axis=1).min() > 0.05


def singular_cases(num_arms):
    """Means and factors of arms that lie on a line or in a plane, meet in a point, or are equal."""
    generator = np.random.default_rng(num_arms)
    line, plane = generator.normal(size=(num_arms, 1)), generator.normal(size=(num_arms, 2))
    mean, full = 0.5 * generator.normal(size=num_arms), generator.normal(size=(num_arms, num_arms))
    twins, triplets = full.copy(), full.copy()
    twins[1], triplets[1], triplets[2] = full[0], full[0], full[0]
    twin_mean, triplet_mean = np.array(mean), np.array(mean)
    twin_mean[1] = triplet_mean[1] = triplet_mean[2] = mean[0]
    return {
        "line": (mean, line),
        "plane": (mean, plane),
        "lines that meet at zero": (np.zeros(num_arms), line),
        "lines that meet elsewhere": (0.1 - 0.7 * line[:, 0], line),
        "twins": (twin_mean, twins),
        "triplets": (triplet_mean, triplets),
        "all the same": (np.full(num_arms, 0.3), np.tile(full[0], (num_arms, 1))),
        "constants": (mean, np.zeros((num_arms, 1))),
        "narrow": (0.1 * mean, np.diag([1.0, 1e-7, 0.3, 1e-4, 0.01][:num_arms])),
        "common": (mean, np.hstack([np.full((num_arms, 1), 2.0), 0.3 * np.eye(num_arms)])),
    }


@pytest.mark.parametrize("num_arms", [3, 4, 5])
def test_singular_covariances_match_draws(num_arms):
    """400,000 draws with NumPy; ties are shared. Six deviations, and the error of the lattice."""
    generator, num_draws = np.random.default_rng(40 + num_arms), 400_000
    for name, (mean, factor) in singular_cases(num_arms).items():
        draws = mean + generator.normal(size=(num_draws, factor.shape[1])) @ factor.T
        highest = draws.max(axis=1)
        is_best = draws >= highest[:, None] - 1e-12
        wins = np.mean(is_best / is_best.sum(axis=1, keepdims=True), axis=0)
        given = jnp.asarray(mean)[None], jnp.asarray(factor @ factor.T)[None]
        error = 4 * highest.std() / np.sqrt(num_draws) + 1e-9 + 1.5e-3 * (num_arms > 3)
        found = float(largest(*given)[0])
        assert abs(found - highest.mean()) < error, (name, found, highest.mean())
        assert found > mean.max() - 1e-12, name
        np.testing.assert_allclose(bests(*given)[0], wins, atol=6e-3, err_msg=name)


@pytest.mark.parametrize("num_arms", [2, 3, 4, 5, 8])
def test_largest_on_a_line_matches_quadrature(num_arms):
    """Perfectly correlated arms m + b·t: integrate the largest over t."""
    generator = np.random.default_rng(num_arms)
    mean, loadings = generator.normal(size=(2, 20, num_arms))
    mean[:5] = 0.3 - 0.4 * loadings[:5]
    lines = mean[:, None, :] + loadings[:, None, :] * FACTOR[None, :, None]
    expected = lines.max(axis=2) @ FACTOR_WEIGHTS
    shared = loadings[:, :, None] * loadings[:, None, :]
    np.testing.assert_allclose(largest(jnp.asarray(mean), jnp.asarray(shared)), expected, atol=2e-7)


@pytest.mark.parametrize(
    ("num_arms", "tolerance"), [(2, 1e-10), (3, 2e-7), (4, 5e-4), (5, 2e-3), (6, 3e-3)]
)
def test_largest_of_independent_arms_is_an_integral(num_arms, tolerance):
    """E max = high - ∫ ∏ P(arm < x) dx below it. Measured: 2e-15, 9e-8, 3e-4, 1.2e-3, 1.9e-3."""
    generator = np.random.default_rng(num_arms)
    mean = 0.5 * generator.normal(size=(12, num_arms))
    deviations = generator.uniform(0.05, 1.0, (12, num_arms))
    mean[0], deviations[0] = 0.0, 1.0
    x = np.linspace(-12.0, 12.0, 60_001)
    below = [
        np.prod([norm.cdf((x - m) / d) for m, d in zip(*case, strict=True)], axis=0)
        for case in zip(mean, deviations, strict=True)
    ]
    expected = x[-1] - np.trapezoid(below, x, axis=1)
    covariances = np.eye(num_arms)[None] * (deviations**2)[:, :, None]
    actual = np.asarray(largest(jnp.asarray(mean), jnp.asarray(covariances)))
    assert np.abs(actual - expected).max() < tolerance


@pytest.mark.parametrize("num_arms", [3, 4, 5])
def test_best_arm_is_known_after_rewards_leave_rounding_in_a_singular_covariance(num_arms):
    """Condition a plane on rewards in the arms, as a belief does, and in the plane, as the oracle.

    Of 200 beliefs none is NaN, and P(best) agrees with 20,000 draws.
    """
    generator = np.random.default_rng(num_arms)
    factors = generator.normal(size=(200, num_arms, 2)) * 10 ** generator.uniform(
        -2, 2, (200, 1, 1)
    )
    factors[::4, 1] = factors[::4, 0]
    noise, means = 0.1, generator.normal(size=(200, num_arms))
    means[::4, 1] = means[::4, 0]
    rewards = generator.normal(size=(200, num_arms))
    covariances = factors @ factors.transpose(0, 2, 1)
    gains = covariances @ np.linalg.inv(covariances + noise**2 * np.eye(num_arms))
    left = covariances - gains @ covariances
    after = means + np.einsum("nab,nb->na", gains, rewards - means)
    found = np.asarray(bests(jnp.asarray(after), jnp.asarray((left + left.transpose(0, 2, 1)) / 2)))
    assert np.all(np.isfinite(found))
    for case in range(0, 200, 10):
        inside = np.linalg.inv(np.eye(2) + factors[case].T @ factors[case] / noise**2)
        centre = inside @ factors[case].T @ (rewards[case] - means[case]) / noise**2
        places = generator.multivariate_normal(centre, inside, 20_000)
        draws = means[case] + places @ factors[case].T
        is_best = draws >= draws.max(axis=1, keepdims=True) - 1e-9 * np.abs(factors[case]).max()
        wins = np.mean(is_best / is_best.sum(axis=1, keepdims=True), axis=0)
        np.testing.assert_allclose(found[case], wins, atol=0.017)
