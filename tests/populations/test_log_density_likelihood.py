import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_oracles import (
    cell_edges,
    cell_likelihood,
    likelihood_table,
    product_of_densities,
    repeated,
    statistics_of,
)
from scipy.integrate import quad
from scipy.special import log_ndtr
from scipy.stats import norm

from cocobandits.numerics.normal_intervals import log_normal_intervals
from cocobandits.populations.known.flat import FlatModel
from cocobandits.populations.log_density import Axis, LogDensityConfig, LogDensityModel
from cocobandits.populations.truncated_normal import interval_log_likelihood

AXIS = Axis(-0.8, 1.0, 5)
REWARDS = ([0.31, -0.12, 0.55], [], [0.9])
log_likelihood = jax.jit(interval_log_likelihood)
flat_evidence = jax.jit(FlatModel.log_evidence, static_argnums=0)


@jax.jit
def interval(lower, upper):
    return log_normal_intervals(jnp.stack([lower, upper])[None, :])[0, 0]


def log_upper_tail(x):
    """Sum the asymptotic series of log(1 - Φ(x)), good to 1e-12 beyond x = 40."""
    series = 1 - x**-2 + 3 * x**-4 - 15 * x**-6 + 105 * x**-8
    return -0.5 * x**2 - 0.5 * math.log(2 * math.pi) - math.log(x) + math.log(series)


def test_cell_likelihood_matches_quadrature():
    """Integrate the product of normal densities over each cell with scipy."""
    actual = log_likelihood(statistics_of(REWARDS), 0.3, AXIS.edges)
    expected = np.log(likelihood_table(AXIS, REWARDS, 0.3))
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-9)


def test_arm_without_rewards_has_likelihood_one():
    """Evidence of nothing is one: the logarithm is exactly zero."""
    actual = np.asarray(log_likelihood(statistics_of(REWARDS), 0.3, AXIS.edges))
    np.testing.assert_array_equal(actual[1], np.zeros(5))
    assert np.all(actual[[0, 2]] != 0)


@pytest.mark.parametrize(("mean", "cell", "sign"), [(7.0, 4, 1.0), (-7.2, 0, -1.0)])
def test_cell_likelihood_is_exact_sixty_deviations_away(mean, cell, sign):
    """Use the asymptotic series of the normal tail, where Φ itself underflows."""
    count, noise = 4, 0.2
    deviation = noise / math.sqrt(count)
    actual = np.asarray(log_likelihood(repeated([count], [mean]), noise, AXIS.edges))
    assert np.all(np.isfinite(actual))

    edges = cell_edges(-0.8, 1.0, 5)
    near, far = sorted(
        (abs(mean - edges[cell]) / deviation, abs(mean - edges[cell + 1]) / deviation)
    )
    assert near > 57
    log_share = log_upper_tail(near) + math.log1p(
        -math.exp(log_upper_tail(far) - log_upper_tail(near))
    )
    constant = -0.5 * count * math.log(2 * math.pi * noise**2)
    width = 0.45
    expected = constant + log_share + 0.5 * math.log(2 * math.pi * deviation**2) - math.log(width)
    assert actual[0, cell] == pytest.approx(expected, rel=1e-12)
    # The nearest cell explains the rewards best, and each further one less.
    assert np.all(np.diff(sign * actual[0]) > 0)


@pytest.mark.parametrize(
    ("lower", "upper"),
    [(-3.0, 0.4), (-0.2, 0.3), (0.0, 2.5), (0.7, 1.9), (-2.2, -2.1), (4.0, 6.5), (-9.0, -7.5)],
)
def test_normal_interval_matches_quadrature(lower, upper):
    """Integrate the standard normal density."""
    expected = math.log(quad(norm.pdf, lower, upper, epsabs=0, epsrel=1e-12)[0])
    assert float(interval(jnp.asarray(lower), jnp.asarray(upper))) == pytest.approx(
        expected, rel=1e-10
    )


@pytest.mark.parametrize(("near", "far"), [(45.0, 45.01), (60.0, 64.0), (300.0, 301.0), (4e3, 5e3)])
def test_normal_interval_is_exact_in_both_tails(near, far):
    """Subtract two asymptotic series; and agree with scipy's log_ndtr."""
    gap = log_upper_tail(far) - log_upper_tail(near)
    expected = log_upper_tail(near) + math.log(-math.expm1(gap))
    right = float(interval(jnp.asarray(near), jnp.asarray(far)))
    left = float(interval(jnp.asarray(-far), jnp.asarray(-near)))
    assert right == left
    assert left == pytest.approx(expected, rel=1e-11)
    scipy_gap = log_ndtr(-far) - log_ndtr(-near)
    assert left == pytest.approx(log_ndtr(-near) + math.log(-math.expm1(scipy_gap)), rel=1e-11)


@pytest.mark.parametrize("middle", [-5.0, -0.3, 0.0, 0.3, 5.0])
def test_normal_interval_is_exact_when_narrow(middle):
    """A narrow interval holds density at its middle times width."""
    expected = norm.logpdf(middle) + math.log(1e-5)
    actual = float(interval(jnp.asarray(middle - 5e-6), jnp.asarray(middle + 5e-6)))
    assert actual == pytest.approx(expected, abs=1e-8)


@settings(deadline=None, max_examples=50, derandomize=True)
@given(st.lists(st.integers(-3000, 3000), min_size=3, max_size=3, unique=True).map(sorted))
def test_normal_interval_adds_up(cuts):
    """Two neighbouring intervals hold together what their union holds."""
    low, middle, high = (jnp.asarray(cut / 100) for cut in cuts)
    parts = np.logaddexp(float(interval(low, middle)), float(interval(middle, high)))
    assert parts == pytest.approx(float(interval(low, high)), rel=1e-8, abs=1e-9)


def test_node_reading_is_wrong_by_the_documented_factor():
    """Integrate 5 pulls over the paper's grid: nodes give 0.24 to 1.88 times that."""
    grid = Axis(-2.0, 2.0, 20)
    settings_ = {"context_axes": (), "arm_axis": grid, "num_modes": 1}
    centre = float(grid.nodes[9])
    # Positions of the sample mean from one node to the next.
    means = centre + grid.spacing * np.linspace(0, 1, 21)
    five_pulls = repeated(np.tile([5, 0], (21, 1)), np.stack([means, means], axis=1))
    edges = cell_edges(-2.0, 2.0, 20)

    model = LogDensityModel(LogDensityConfig(2, **settings_))
    at_mean = jax.vmap(lambda rewards: model.log_evidence(jnp.zeros(1), jnp.zeros(0), rewards))
    expected = np.array(
        [cell_likelihood(edges[0], edges[-1], [mean] * 5, 0.1) for mean in means.tolist()]
    )
    nodes = np.linspace(-2.0, 2.0, 20)
    by_nodes = [
        np.mean([product_of_densities(node, [mean] * 5, 0.1) for node in nodes])
        for mean in means.tolist()
    ]
    node_ratio = np.array(by_nodes) / expected
    assert node_ratio.min() == pytest.approx(0.24, abs=0.01)
    assert node_ratio.max() == pytest.approx(1.88, abs=0.01)
    np.testing.assert_allclose(np.exp(jax.jit(at_mean)(five_pulls)), expected, rtol=1e-10)


def test_flat_evidence_matches_quadrature():
    """Integrate each arm's product of densities over the whole range."""
    model = FlatModel(3, -0.9, 1.3, 0.3)
    expected = sum(math.log(cell_likelihood(-0.9, 1.3, arm, 0.3)) for arm in REWARDS)
    actual = flat_evidence(model, jnp.zeros(0), jnp.zeros(2), statistics_of(REWARDS))
    assert float(actual) == pytest.approx(expected, rel=1e-9)


def test_cells_together_hold_the_likelihood_of_the_range():
    """The mean over all cells is the average over the union, taken as one cell."""
    rewards = statistics_of(REWARDS)
    cells = np.asarray(log_likelihood(rewards, 0.3, AXIS.edges))
    edges = cell_edges(-0.8, 1.0, 5)
    model = FlatModel(3, edges[0], edges[-1], 0.3)
    whole = float(flat_evidence(model, jnp.zeros(0), jnp.zeros(0), rewards))
    assert np.log(np.exp(cells).mean(axis=1)).sum() == pytest.approx(whole, rel=1e-12)
