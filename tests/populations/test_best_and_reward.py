"""The joint laws of the next reward, of who is best, and of all means: sums, quadrature, draws."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from model_oracles import cell_edges, joint_law, statistics_of

from cocobandits.numerics.quadrature import integrate_above
from cocobandits.populations.base import Belief
from cocobandits.populations.gaussian_belief import GaussianBelief
from cocobandits.populations.known.flat import FlatModel
from cocobandits.populations.log_density import Axis, LogDensityConfig, LogDensityModel
from cocobandits.populations.truncated_normal import quadrature
from support.draws import draw_means

NOISE = 0.25
LOW, HIGH = -0.6, 0.9
REWARDS = jnp.linspace(-2.6, 2.9, 331)
STEP = float(REWARDS[1] - REWARDS[0])
# Averages of the first two arms lie in the same cell of every grid below; the third has none.
HISTORIES = {
    2: ([0.21, 0.35], [0.3]),
    3: ([0.21, 0.35], [0.3], []),
    4: ([0.21, 0.35], [0.3], [], [0.1, -0.5]),
}
CELLS = {2: 5, 3: 4, 4: 3}


@functools.cache
def grid_model(num_arms):
    return LogDensityModel(
        LogDensityConfig(
            num_arms,
            context_axes=(),
            arm_axis=Axis(LOW, HIGH, CELLS[num_arms]),
            reward_noise=NOISE,
            num_modes=9,
        )
    )


@functools.cache
def belief_of(num_arms, kind):
    """Condition a lopsided population on the histories."""
    if kind == "gaussian":
        generator = np.random.default_rng(num_arms)
        roots = 0.15 * generator.normal(size=(2, num_arms, num_arms))
        return GaussianBelief(
            jnp.log(jnp.array([0.7, 0.3])),
            jnp.asarray(0.4 * generator.normal(size=(2, num_arms))),
            jnp.asarray(roots @ roots.transpose(0, 2, 1)),
            NOISE,
        ).condition(statistics_of(HISTORIES[num_arms]))
    if kind == "flat":
        edges = cell_edges(LOW, HIGH, CELLS[num_arms])
        model = FlatModel(num_arms, edges[0], edges[-1], NOISE)
        parameters = jnp.zeros(0)
    else:
        model = grid_model(num_arms)
        parameters = jnp.asarray(np.random.default_rng(12).normal(size=9))
    return model.posterior(parameters, jnp.zeros(0), statistics_of(HISTORIES[num_arms]))


@jax.jit
def ask(belief):
    return (
        belief.best_and_reward(REWARDS),
        belief.predictive(REWARDS),
        belief.best_probability(),
        belief.mean_and_reward(REWARDS),
        belief.mean(),
    )


@functools.cache
def answers_of(num_arms, kind):
    return tuple(map(np.asarray, ask(belief_of(num_arms, kind))))


EVERY = [(arms, kind) for kind in ("cell", "flat", "gaussian") for arms in (2, 3, 4)]


@pytest.mark.parametrize(("num_arms", "kind"), EVERY)
def test_margins_are_the_predictive_density_and_the_chance_to_be_best(num_arms, kind):
    """Sum over who is best; and integrate over rewards, whichever arm is pulled."""
    joint, predictive, best, *_ = answers_of(num_arms, kind)
    assert joint.shape == (num_arms, num_arms, len(REWARDS))
    assert joint.min() >= 0
    # Who is best of four correlated Gaussians is a lattice sum, good to about three digits.
    atol = 2e-4 if (num_arms, kind) == (4, "gaussian") else 1e-8
    np.testing.assert_allclose(joint.sum(axis=0), predictive, atol=atol)
    for arm in range(num_arms):
        np.testing.assert_allclose(joint[:, arm].sum(axis=1) * STEP, best, atol=max(atol, 1e-7))
    # An arm that is best has better rewards, so the two are not independent.
    assert np.abs(joint - best[:, None, None] * predictive[None]).max() > 0.01


@pytest.mark.parametrize(("num_arms", "kind"), EVERY)
def test_means_after_a_reward_average_to_the_means_before(num_arms, kind):
    *_, after, mean = answers_of(num_arms, kind)
    for arm in range(num_arms):
        np.testing.assert_allclose(after[:, arm].sum(axis=1) * STEP, mean, atol=1e-7)


@pytest.mark.parametrize(("num_arms", "kind"), [(3, "cell"), (2, "cell")])
def test_means_after_a_reward_match_conditioning(num_arms, kind):
    """The grid has a way of its own; the slow way is to learn from every reward in turn."""
    belief = belief_of(num_arms, kind)
    expected = jax.jit(lambda belief: Belief.mean_and_reward(belief, REWARDS))(belief)
    np.testing.assert_allclose(answers_of(num_arms, kind)[3], expected, atol=1e-8)


@pytest.mark.parametrize(("num_arms", "kind"), [e for e in EVERY if e[1] != "gaussian"])
def test_joint_law_matches_quadrature(num_arms, kind):
    """Integrate within every tuple of cells, arm by arm: who is best, and what it would show."""
    edges = cell_edges(LOW, HIGH, CELLS[num_arms])
    if kind == "flat":
        edges, log_weights = [edges[0], edges[-1]], np.zeros((1,) * num_arms)
    else:
        parameters = jnp.asarray(np.random.default_rng(12).normal(size=9))
        log_weights = np.asarray(grid_model(num_arms).log_density(parameters, jnp.zeros(0)))
    rewards = np.asarray(REWARDS)
    expected = joint_law(log_weights, edges, HISTORIES[num_arms], rewards, NOISE)
    np.testing.assert_allclose(answers_of(num_arms, kind)[0], expected, atol=1e-7)


def check_against_draws(joint, means, seed):
    """Count best arms and rewards of draws in 22 bins."""
    generator = np.random.default_rng(seed)
    num_draws, num_arms = means.shape
    best = np.argmax(means, axis=1)
    cuts = np.asarray(REWARDS)[::15]
    cumulated = np.concatenate(
        [
            np.zeros((num_arms, num_arms, 1)),
            np.cumsum((joint[..., 1:] + joint[..., :-1]) * STEP / 2, axis=2),
        ],
        axis=2,
    )
    expected = np.diff(cumulated[..., ::15], axis=2)
    for arm in range(num_arms):
        shown = means[:, arm] + NOISE * generator.normal(size=num_draws)
        for number in range(num_arms):
            counts, _ = np.histogram(shown[best == number], bins=cuts)
            share = expected[number, arm]
            errors = np.sqrt(share * (1 - share) / num_draws) + 1e-6
            # Some two hundred bins: four and a half deviations.
            assert np.abs((counts / num_draws - share) / errors).max() < 4.5


@pytest.mark.parametrize(("num_arms", "kind"), [(3, "cell"), (3, "gaussian")])
def test_joint_law_matches_many_draws(num_arms, kind):
    belief = belief_of(num_arms, kind)
    check_against_draws(np.asarray(ask(belief)[0]), draw_means(belief, 3, 200_000), seed=1)


def test_narrow_beliefs_keep_their_margins():
    """After 2,500 rewards of two arms in one cell, the peaks are a hundredth of a cell wide."""
    model = grid_model(3)
    count = jnp.array([2500.0, 2500.0, 0.0])
    mean = jnp.array([0.301, 0.298, 0.0])
    statistics = statistics_of(([], [], []))._replace(
        count=count, total=count * mean, total_square=count * mean**2
    )
    parameters = jnp.asarray(np.random.default_rng(12).normal(size=9))
    joint, predictive, best, *_ = map(
        np.asarray, ask(model.posterior(parameters, jnp.zeros(0), statistics))
    )
    np.testing.assert_allclose(joint.sum(axis=0), predictive, atol=1e-7)
    for arm in range(3):
        np.testing.assert_allclose(joint[:, arm].sum(axis=1) * STEP, best, atol=1e-7)
    assert 0.05 < best[1] / best[0] < 1


@pytest.mark.parametrize("share", [0.3, 0.02])
def test_small_noise_keeps_the_margins(share):
    """Noise much narrower than a cell is blurred to a tenth of it; who is best stays exact."""
    axis = Axis(LOW, HIGH, 4)
    noise = share * axis.spacing
    model = LogDensityModel(
        LogDensityConfig(2, (), axis, reward_noise=noise, num_modes=9, arm_lengthscale=0.5)
    )
    statistics = statistics_of(([0.21, 0.21 + noise], []))
    parameters = jnp.asarray(np.random.default_rng(12).normal(size=9))
    rewards = jnp.linspace(LOW - 2.5 * axis.spacing, HIGH + 2.5 * axis.spacing, 2401)

    @jax.jit
    def ask_all(parameters):
        belief = model.posterior(parameters, jnp.zeros(0), statistics)
        return (
            belief.best_and_reward(rewards),
            belief.predictive(rewards),
            belief.best_probability(),
        )

    joint, predictive, best = map(np.asarray, ask_all(parameters))
    for arm in range(2):
        found = joint[:, arm].sum(axis=1) * float(rewards[1] - rewards[0])
        np.testing.assert_allclose(found, best, atol=1e-3)
    worst = np.abs(joint.sum(axis=0) - predictive).max(axis=1) / predictive.max(axis=1)
    print(f"\nnoise of {share} cells: relative error of the margin {worst}")
    assert (worst.max() < 1e-3) == (share >= 0.1)


def test_integrals_above_points_match_the_antiderivative():
    """Integrate a cubic from every point to the end of its interval by hand."""
    statistics = statistics_of(([0.2], [0.6, 0.5]))
    edges = jnp.array([-1.0, 0.1, 0.4, 1.5])
    rule = quadrature(statistics, 0.1, edges)
    intervals = jnp.searchsorted(edges, rule.centres, side="right") - 1
    ends = np.asarray(edges)[np.asarray(intervals) + 1]
    points = np.asarray(rule.points)
    found = integrate_above(rule, intervals, rule.points**3 - rule.points)
    expected = (ends**4 - points**4) / 4 - (ends**2 - points**2) / 2
    np.testing.assert_allclose(found, expected, atol=1e-12)
