"""The average of particles of different noise against sums over particles, each by itself."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from model_oracles import cell_edges, fine_joint, statistics_of, summarise

from cocobandits.populations.log_density import Axis, LogDensityConfig, LogDensityModel

AXIS = Axis(-0.6, 0.9, 4)
CONTEXT = jnp.zeros(0)
LOG_WEIGHTS = jnp.log(jnp.array([0.3, 0.25, 0.25, 0.2]))
# All arms in the cell from 0.15 to 0.65; the wider the noise, the less the averages decide.
REWARDS = ([0.3, 0.38, 0.31], [0.2], [0.36, 0.33, 0.4, 0.35, 0.37])
EARLY, LATE = statistics_of(REWARDS), statistics_of(([0.41], [0.44, 0.5], []))
# Half-way between points of the fine grid below.
VALUES = np.array([-0.8, -0.2, 0.2, 0.3375, 0.5, 1.1])
NEXT_REWARDS = np.linspace(-1.5, 1.8, 23)


@functools.cache
def learning_model():
    return LogDensityModel(
        LogDensityConfig(
            3, (), AXIS, reward_noise=0.1, noise_deviation=0.8, basis="hilbert", num_modes=9
        )
    )


@functools.cache
def particles(spread=1.0):
    """Draw four particles whose noises are far apart: 0.02, 0.07, 0.2 and 0.5."""
    drawn = np.random.default_rng(6).normal(size=(4, learning_model().num_parameters))
    drawn[:, -1] = spread * np.log([0.2, 0.7, 2.0, 5.0]) / 0.8
    return jnp.asarray(drawn)


average = jax.jit(lambda model, *rest: model.average(*rest), static_argnums=0)
posterior = jax.jit(lambda model, *user: model.posterior(*user), static_argnums=0)
evidences = jax.jit(
    lambda model, *user: jax.vmap(model.log_evidence, (0, None, None))(*user), static_argnums=0
)
learn = jax.jit(lambda belief, statistics: belief.condition(statistics))
among = jax.jit(lambda belief, is_eligible: belief.among(is_eligible))


@jax.jit
def ask(belief):
    values, rewards = jnp.asarray(VALUES), jnp.asarray(NEXT_REWARDS)
    return {
        "mean": belief.mean(),
        "second moment": belief.variance() + belief.mean() ** 2,
        "best_probability": belief.best_probability(),
        "expected_best": belief.expected_best(),
        "cumulative": belief.cumulative(values),
        "predictive": belief.predictive(rewards),
        "best and reward": belief.best_and_reward(rewards),
        "mean and reward": belief.mean_and_reward(rewards),
        "pair": belief.pair_probability(0, 1, values),
    }


def sum_over_particles(shares, given, arms=None, statistics=EARLY):
    each = [posterior(learning_model(), one, CONTEXT, statistics) for one in given]
    answers = [ask(one if arms is None else among(one, arms)) for one in each]
    return {
        name: sum(s * np.asarray(one[name]) for s, one in zip(shares, answers, strict=True))
        for name in answers[0]
    }


def assert_near(actual, expected, tolerance):
    for name, value in expected.items():
        scale = 1 + np.abs(value).max()
        np.testing.assert_allclose(actual[name], value, atol=tolerance * scale, err_msg=name)


def test_average_is_the_sum_over_points_of_a_fine_grid():
    """Tabulate each particle's posterior of all arm means under its own noise, and add up.

    The noises are 0.29 apart in log σ, which allows an error of 0.1 · 0.29² = 0.009.
    """
    model = learning_model()
    expected = dict.fromkeys(("best_probability", "expected_best", "mean", "cumulative"), 0.0)
    for weight, one in zip(np.exp(LOG_WEIGHTS), particles(), strict=True):
        noise, density = float(model.noise(one)), np.asarray(model.log_density(one, CONTEXT))
        edges = cell_edges(AXIS.low, AXIS.high, AXIS.size)
        points, mass = fine_joint(density, edges, REWARDS, noise, per_cell=40)
        answers = summarise(points, mass, VALUES, NEXT_REWARDS, noise)
        expected = {name: expected[name] + weight * answers[name] for name in expected}
    assert np.ptp(expected["best_probability"]) > 0.3
    found = ask(average(model, particles(), LOG_WEIGHTS, CONTEXT, EARLY))
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, atol=0.009, err_msg=name)


@pytest.mark.parametrize(("spread", "tolerance"), [(1.0, 9e-3), (0.3, 8e-4), (0.0, 1e-12)])
def test_average_is_the_sum_over_particles(spread, tolerance):
    """The error is of second order in the distance of noises; with one noise there is none."""
    found = ask(average(learning_model(), particles(spread), LOG_WEIGHTS, CONTEXT, EARLY))
    assert_near(found, sum_over_particles(np.exp(LOG_WEIGHTS), particles(spread)), tolerance)
    np.testing.assert_allclose(np.sum(found["best_probability"]), 1.0, atol=1e-12)


def test_average_over_some_arms_is_the_sum_over_particles():
    arms = jnp.array([True, False, True])
    average_of_two = among(
        average(learning_model(), particles(), LOG_WEIGHTS, CONTEXT, EARLY), arms
    )
    assert_near(
        ask(average_of_two), sum_over_particles(np.exp(LOG_WEIGHTS), particles(), arms), 9e-3
    )


def test_conditioned_average_weighs_noises_by_what_they_expected():
    """Σ_s w_s p(later rewards | s, earlier) P_s(best | all) over the sum of weights.

    Four close noises: the evidence of rewards is interpolated too, and is sharper than a chance.
    """
    model, given = learning_model(), particles(0.1)
    ratio = np.asarray(evidences(model, given, CONTEXT, EARLY.plus(LATE)))
    ratio = ratio - np.asarray(evidences(model, given, CONTEXT, EARLY))
    shares = np.exp(np.asarray(LOG_WEIGHTS) + ratio)
    shares /= shares.sum()
    assert np.abs(shares - np.exp(LOG_WEIGHTS)).max() > 0.05
    found = ask(learn(average(model, given, LOG_WEIGHTS, CONTEXT, EARLY), LATE))
    assert_near(found, sum_over_particles(shares, given, statistics=EARLY.plus(LATE)), 2e-3)


def test_particles_without_weight_do_not_stretch_the_noises():
    far = particles(0.1).at[3, -1].set(6.0)
    weights = jnp.log(jnp.array([0.4, 0.35, 0.25, 1e-12]))
    found = ask(average(learning_model(), far, weights, CONTEXT, EARLY))
    assert_near(found, sum_over_particles(np.exp(weights), far), 2e-4)
