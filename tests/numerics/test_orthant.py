"""Orthant probabilities against closed forms, dense sums over a common factor, and scipy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import owens_t
from scipy.stats import multivariate_normal, norm

from cocobandits.numerics.orthant import best_probability, bivariate_cumulative, orthant_probability

FACTOR = np.linspace(-9.0, 9.0, 20_001)
FACTOR_WEIGHTS = norm.pdf(FACTOR) * (FACTOR[1] - FACTOR[0])
BOUNDS = np.array([-40.0, -8.0, -3.0, -1.1, -0.2, 0.001, 0.7, 2.0, 6.0, 40.0])

orthant = jax.jit(orthant_probability)
orthants = jax.jit(jax.vmap(orthant_probability))
bests = jax.jit(jax.vmap(best_probability))
cumulative = jax.jit(bivariate_cumulative)


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
