import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from model_oracles import cell_edges, fine_joint, repeated, statistics_of, summarise
from scipy.integrate import quad
from scipy.stats import norm

from cocobandits.populations.known.flat import FlatModel
from cocobandits.populations.log_density import Axis, LogDensityConfig, LogDensityModel

NOISE = 0.25
LOW, HIGH, CELLS = -0.6, 0.9, 4  # edges at -0.85, -0.35, 0.15, 0.65, 1.15
EDGES = cell_edges(LOW, HIGH, CELLS)
FLAT = FlatModel(2, EDGES[0], EDGES[-1], NOISE)
# Below the grid, on its edges, inside cells, and above it; all on boundaries of the fine sums.
VALUES = jnp.array([-2.0, -0.85, -0.6, -0.35, 0.275, 0.65, 0.775, 1.15, 2.0])
NEXT_REWARDS = jnp.linspace(-3.0, 3.3, 211)
CASES = {
    "same cell": ([0.21, 0.35, 0.1], [0.3]),
    "arm unseen": ([], [0.5, -0.4, 0.2]),
    "no rewards": ([], []),
}


@functools.cache
def grid_model(num_arms=2, cells=CELLS):
    return LogDensityModel(
        LogDensityConfig(
            num_arms,
            context_axes=(Axis(0.0, 1.0, 3),),
            arm_axis=Axis(LOW, HIGH, cells),
            reward_noise=NOISE,
            num_modes=9,
        )
    )


# Beliefs are pytrees; several small jitted questions compile faster than one large one.
posterior = jax.jit(lambda model, *user: model.posterior(*user), static_argnums=0)
log_evidence = jax.jit(lambda model, *user: model.log_evidence(*user), static_argnums=0)
predictive = jax.jit(lambda belief: belief.predictive(NEXT_REWARDS))


@jax.jit
def ask_best(belief):
    return {
        "mean": belief.mean(),
        "variance": belief.variance(),
        "best_probability": belief.best_probability(),
        "expected_best": belief.expected_best(),
    }


@jax.jit
def ask_shape(belief):
    return {
        "cumulative": belief.cumulative(VALUES),
        "pair": belief.pair_probability(0, 1, VALUES),
        "pair_swapped": belief.pair_probability(1, 0, VALUES),
    }


def describe(belief):
    return ask_best(belief) | ask_shape(belief) | {"predictive": predictive(belief)}


def particle(model):
    """Make a lopsided population, and a context off the nodes."""
    generator = np.random.default_rng(12)
    return jnp.asarray(generator.normal(size=model.num_parameters)), jnp.array([0.3])


def belief_of(model, statistics):
    return posterior(model, *particle(model), statistics)


def oracle(model, rewards, per_cell):
    """Tabulate the posterior of the particle, or of the flat model, finely."""
    if model is FLAT:
        return fine_joint(np.zeros((1, 1)), [EDGES[0], EDGES[-1]], rewards, NOISE, 4 * per_cell)
    parameters, context = particle(model)
    log_weights = np.asarray(jax.jit(model.log_density)(parameters, context))
    edges = cell_edges(LOW, HIGH, model.config.arm_axis.size)
    return fine_joint(log_weights, edges, rewards, NOISE, per_cell)


def assert_same(actual, expected, atol):
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(actual[name], value, atol=atol, err_msg=name)


MODELS = {"cell": grid_model(), "flat": FLAT}


@pytest.mark.parametrize("kind", ["cell", "flat"])
@pytest.mark.parametrize("case", CASES)
def test_belief_matches_riemann_sum(kind, case):
    """Sum over 200 x 200 points per pair of cells; two arms in one cell must be ordered."""
    model, rewards = MODELS[kind], CASES[case]
    expected = summarise(*oracle(model, rewards, 200), VALUES, NEXT_REWARDS, NOISE)
    assert_same(describe(belief_of(model, statistics_of(rewards))), expected, atol=3e-5)


def test_three_arms_in_one_cell_match_riemann_sum():
    """Sum over 50^3 points per triple of cells; all three sample means lie in the same one."""
    model = grid_model(3, cells=3)
    rewards = ([0.3, 0.1], [0.25], [0.05, 0.2, 0.3])
    expected = summarise(*oracle(model, rewards, 50), VALUES, NEXT_REWARDS, NOISE)
    actual = ask_best(belief_of(model, statistics_of(rewards)))
    assert_same(actual, {name: expected[name] for name in actual}, atol=3e-4)
    best = np.asarray(actual["best_probability"])
    assert best.sum() == pytest.approx(1.0, abs=1e-12)
    assert best.min() > 0.1


@pytest.mark.parametrize("kind", ["cell", "flat"])
def test_narrow_belief_matches_normal_formulas(kind):
    """After 10,000 rewards per arm all is normal: Φ, and Clark's formula for the maximum."""
    means, deviation = np.array([0.301, 0.298]), NOISE / 100
    actual = describe(belief_of(MODELS[kind], repeated([10_000, 10_000], means)))
    np.testing.assert_allclose(actual["mean"], means, atol=1e-10)
    np.testing.assert_allclose(actual["variance"], [deviation**2] * 2, rtol=1e-6)

    spread = deviation * math.sqrt(2)
    lead = (means[0] - means[1]) / spread
    wins = [norm.cdf(lead), norm.cdf(-lead)]
    np.testing.assert_allclose(actual["best_probability"], wins, atol=1e-8)
    clark = means @ wins + spread * norm.pdf(lead)
    assert float(actual["expected_best"]) == pytest.approx(clark, abs=1e-10)
    rewards = np.asarray(NEXT_REWARDS)
    expected = [norm.pdf(rewards, mean, math.hypot(NOISE, deviation)) for mean in means]
    np.testing.assert_allclose(actual["predictive"], expected, atol=1e-8)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("case", CASES)
def test_predictive_is_a_density_and_a_ratio_of_evidences(kind, case):
    """Divide the evidence with the reward by the one without; and integrate to one."""
    model, statistics = MODELS[kind], statistics_of(CASES[case])
    density, rewards = (
        np.asarray(predictive(belief_of(model, statistics))),
        np.asarray(NEXT_REWARDS),
    )
    np.testing.assert_allclose(np.trapezoid(density, rewards, axis=1), [1.0, 1.0], atol=1e-9)

    now = float(log_evidence(model, *particle(model), statistics))
    for arm, index in [(0, 90), (1, 120)]:
        following = statistics.add(arm, float(rewards[index]))
        ratio = math.exp(float(log_evidence(model, *particle(model), following)) - now)
        assert density[arm, index] == pytest.approx(ratio, rel=1e-10)


@pytest.mark.parametrize(
    "statistics",
    [
        *(statistics_of(rewards) for rewards in CASES.values()),
        repeated([10_000, 1], [0.64, 0.9]),
        repeated([3, 100], [1.3, -0.8]),
    ],
    ids=[*CASES, "narrow", "at the edges"],
)
def test_flat_model_is_the_grid_model_at_zero(statistics):
    """Cells of equal probability, each flat inside, are one uniform range."""
    grid, context = MODELS["cell"], jnp.array([0.3])
    np.testing.assert_allclose(FLAT.mean_range, grid.mean_range, rtol=1e-15)
    expected = describe(posterior(grid, jnp.zeros(9), context, statistics))
    actual = describe(posterior(FLAT, jnp.zeros(0), context, statistics))
    assert_same(actual, expected, atol=1e-10)
    assert float(log_evidence(FLAT, jnp.zeros(0), context, statistics)) == pytest.approx(
        float(log_evidence(grid, jnp.zeros(9), context, statistics)), rel=1e-10, abs=1e-10
    )


def test_flat_belief_of_many_arms_is_equivariant():
    """Permute 30 arms, some unseen: every answer is permuted with them; unequal arms differ."""
    generator = np.random.default_rng(7)
    counts, means = generator.integers(0, 6, 30), generator.uniform(-0.7, 1.0, 30)
    order = generator.permutation(30)
    straight = ask_best(flat_belief_of_30_arms(counts, means))
    permuted = ask_best(flat_belief_of_30_arms(counts[order], means[order]))
    for name in ("mean", "variance", "best_probability"):
        np.testing.assert_allclose(permuted[name], np.asarray(straight[name])[order], atol=1e-12)
    assert float(straight["expected_best"]) == pytest.approx(
        float(permuted["expected_best"]), rel=1e-12
    )
    best = np.asarray(straight["best_probability"])
    assert best.sum() == pytest.approx(1.0, abs=1e-12)
    assert best.max() > 3 * best.mean()


def test_flat_belief_of_many_arms_matches_riemann_sum():
    """Add up density times the product of the other arms' distribution functions, 20,000 points."""
    generator = np.random.default_rng(8)
    counts, means = generator.integers(1, 6, 30), generator.uniform(-0.7, 1.0, 30)
    points = -0.9 + 2.2 * (np.arange(20_000) + 0.5) / 20_000
    density = norm.pdf(points[None, :], means[:, None], NOISE / np.sqrt(counts)[:, None])
    density /= density.sum(axis=1, keepdims=True)
    below = np.cumsum(density, axis=1) - density / 2
    wins = [density[a] @ np.prod(np.delete(below, a, axis=0), axis=0) for a in range(30)]
    actual = ask_best(flat_belief_of_30_arms(counts, means))
    np.testing.assert_allclose(actual["best_probability"], wins, atol=1e-6)
    np.testing.assert_allclose(actual["mean"], density @ points, atol=1e-6)


def flat_belief_of_30_arms(counts, means):
    model = FlatModel(30, -0.9, 1.3, NOISE)
    return model.posterior(jnp.zeros(0), jnp.zeros(0), repeated(counts, means))


def test_flat_expected_best_of_many_unseen_arms():
    """The maximum of 30 uniform arms lies 30/31 up the range."""
    actual = ask_best(flat_belief_of_30_arms([0] * 30, [0] * 30))
    assert float(actual["expected_best"]) == pytest.approx(-0.9 + 2.2 * 30 / 31, abs=1e-8)


def truncated_mean(mean, deviation, low, high):
    """Integrate the normal density over an interval in its tail, scaled to one at the edge."""
    edge = high if mean > high else low
    reach = 60 * deviation**2 / abs(mean - edge)
    bounds = (max(low, edge - reach), min(high, edge + reach))

    def density(t):
        return math.exp(
            0.5 * ((edge - mean) / deviation) ** 2 - 0.5 * ((t - mean) / deviation) ** 2
        )

    mass, first = (quad(lambda t, p=p: density(t) * t**p, *bounds)[0] for p in (0, 1))
    return first / mass


@pytest.mark.parametrize("kind", ["cell", "flat"])
@pytest.mark.parametrize(("mean", "nearest"), [(1.5, 1.15), (-1.3, -0.85)])
def test_belief_about_rewards_beyond_the_range(kind, mean, nearest):
    """Integrate the truncated normal at the edge: 400 rewards whose mean lies outside."""
    low, high = (EDGES[-2], EDGES[-1]) if mean > 0 else (EDGES[0], EDGES[1])
    expected = truncated_mean(mean, NOISE / 20, low, high)
    assert abs(expected - nearest) < 1e-3
    actual = ask_best(belief_of(MODELS[kind], repeated([400, 1], [mean, 0.2])))
    assert float(actual["mean"][0]) == pytest.approx(expected, abs=1e-6)
